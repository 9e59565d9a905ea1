// SPDX-License-Identifier: Apache-2.0
// Calls of the library as builtin functions of Python, for torch's tensors.
//
// torch lends tensors, its stream and its allocator by a table of C functions, so a tensor is a
// description on the stack, in a tenth of a microsecond. Others come by ctypes.
//
// call(operation, options, threads, tensors…) is similis_call(): operation is a position in
// similis_schema()'s list, options the address of a struct, threads the number of threads that the
// call may use, and a tensor that is left out is None.
// attempt(operation, options, threads, tensors…) is the same for callers who have another way:
// where a tensor that is given has no memory, which the library would take for one that is left
// out, it calls nothing and returns kNotTaken. attempt_images(operation, options, threads, unasked,
// x, y, results…) leaves out so many tensors behind y, and does not take images that
// _functions/layouts.py arranges or converts. scale(tensor, factor, threads) is similis_scale().
// They return the status of the C interface, and raise what torch raises for a tensor it cannot
// lend.
#include <array>
#include <cstddef>
#include <cstdint>

#include "python/binding/exchange.h"
#include "python/binding/framework_memory.h"
#include "python/binding/stable_abi.h"
#include "similis/c/core.h"

namespace {

using similis_binding::ExchangeTable;
using similis_binding::FrameworkMemory;

const ExchangeTable* torch_table = nullptr;  // set once, before any function is called

constexpr similis_status kNotTaken = -1;

// The arguments of a function, read one after the other. Once one is wrong, an exception is set.
class Arguments {
 public:
  Arguments(PyObject* const* given, std::ptrdiff_t count) : given_(given), count_(count) {}

  std::int64_t number() {
    if (!are_right_) return 0;
    if (taken_ >= count_) return fail("similis: the binding lacks an argument");
    const std::int64_t number = PyLong_AsLongLong(given_[taken_++]);
    if (number == -1 && PyErr_Occurred() != nullptr) are_right_ = false;
    return number;
  }
  void tensor() {
    if (!are_right_) return;
    if (taken_ >= count_ || tensors_ == described_.size()) {
      fail("similis: the binding takes other tensors");
      return;
    }
    PyObject* const object = given_[taken_++];
    similis_tensor* const tensor = &described_[tensors_];
    const bool is_none = object == &_Py_NoneStruct;
    pointers_[tensors_++] = is_none ? nullptr : tensor;
    if (is_none) return;
    if (torch_table->describe(object, tensor) != 0) {
      are_right_ = false;
      return;
    }
    have_memory_ &= tensor->data != nullptr;
  }
  void leave_out(std::int64_t count) {
    if (count < 0 || count > static_cast<std::int64_t>(described_.size() - tensors_)) {
      fail("similis: the binding takes fewer tensors");
      return;
    }
    for (; count > 0; --count) pointers_[tensors_++] = nullptr;
  }
  void tensors() {
    while (are_right_ && taken_ < count_) tensor();
  }

  bool are_right() {
    if (are_right_ && (tensors_ == 0 || pointers_[0] == nullptr)) {
      fail("similis: the binding takes a tensor first");
    }
    return are_right_;
  }
  bool have_memory() const { return have_memory_; }
  std::int32_t count() const { return static_cast<std::int32_t>(tensors_); }
  const similis_tensor* const* pointers() const { return pointers_.data(); }
  const similis_tensor& first() const { return *pointers_[0]; }

  // The stream that torch would use; null, with an exception set, if it has none.
  void* stream() {
    void* stream = nullptr;
    const similis_device device = first().device;
    if (device.type == SIMILIS_CUDA &&
        torch_table->current_stream(device.type, device.index, &stream) != 0) {
      are_right_ = false;
    }
    return stream;
  }

 private:
  int fail(const char* sentence) {
    if (are_right_) PyErr_SetString(PyExc_TypeError, sentence);
    are_right_ = false;
    return 0;
  }

  PyObject* const* given_;
  std::ptrdiff_t count_, taken_ = 0;
  std::array<similis_tensor, 24> described_;
  std::array<const similis_tensor*, 24> pointers_;
  std::size_t tensors_ = 0;
  bool are_right_ = true, have_memory_ = true;
};

// Runs a function of (similis_execution) without the interpreter's lock.
template <class Function>
PyObject* run(Arguments* arguments, std::int64_t threads, const Function& function) {
  void* const stream = arguments->stream();
  if (!arguments->are_right()) return nullptr;
  void* const thread = PyEval_SaveThread();
  similis_status status = SIMILIS_OK;
  {
    FrameworkMemory memory(*torch_table);
    status = function(memory.execution_on(arguments->first().device, stream, threads));
  }
  PyEval_RestoreThread(thread);
  return PyLong_FromLong(status);
}

PyObject* run_call(
    Arguments* arguments, std::int64_t operation, std::int64_t options, std::int64_t threads) {
  return run(arguments, threads, [&](const similis_execution& execution) {
    return similis_call(static_cast<std::int32_t>(operation), arguments->pointers(),
        arguments->count(), reinterpret_cast<const void*>(options), &execution);
  });
}

PyObject* call_if(bool without_memory, PyObject* const* given, std::ptrdiff_t count) {
  Arguments arguments(given, count);
  const std::int64_t operation = arguments.number(), options = arguments.number();
  const std::int64_t threads = arguments.number();
  arguments.tensors();
  if (!arguments.are_right()) return nullptr;
  if (!without_memory && !arguments.have_memory()) return PyLong_FromLong(kNotTaken);
  return run_call(&arguments, operation, options, threads);
}

PyObject* call(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  return call_if(true, given, count);
}

PyObject* attempt(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  return call_if(false, given, count);
}

// Returns whether layouts.py leaves such an image as it is.
bool is_usual_image(const similis_tensor& image) {
  constexpr int kUnsigned = 1, kFloat = 2, kBfloat = 4;
  const int code = image.dtype.code, bits = image.dtype.bits;
  const bool is_float = code == kFloat || code == kBfloat;
  if (image.ndim < 4 || !(is_float || (code == kUnsigned && bits == 8))) return false;
  return image.ndim > 4 || (image.shape[3] != 3 && image.shape[3] != 4);
}

PyObject* attempt_images(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  Arguments arguments(given, count);
  const std::int64_t operation = arguments.number(), options = arguments.number();
  const std::int64_t threads = arguments.number(), unasked = arguments.number();
  arguments.tensor();
  arguments.tensor();
  arguments.leave_out(unasked);
  arguments.tensors();
  if (!arguments.are_right()) return nullptr;
  if (!arguments.have_memory() || !is_usual_image(arguments.first())) {
    return PyLong_FromLong(kNotTaken);
  }
  return run_call(&arguments, operation, options, threads);
}

PyObject* scale(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  Arguments arguments(given, count);
  arguments.tensor();
  arguments.tensor();
  const std::int64_t threads = arguments.number();
  if (!arguments.are_right()) return nullptr;
  return run(&arguments, threads, [&](const similis_execution& execution) {
    return similis_scale(arguments.pointers()[0], arguments.pointers()[1], &execution);
  });
}

}  // namespace

/// A tuple of call, attempt, attempt_images and scale for the tensors of a torch with this capsule;
/// null with an exception if it is no such capsule, an empty one if the table lacks a function.
/// With the interpreter's lock, as ctypes.PyDLL has it.
extern "C" __attribute__((visibility("default"))) PyObject* similis_direct_functions(
    PyObject* capsule) {
  constexpr int kFast = 0x80;  // METH_FASTCALL
  static std::array<PyMethodDef, 4> methods{{
      {"call", call, kFast, nullptr},
      {"attempt", attempt, kFast, nullptr},
      {"attempt_images", attempt_images, kFast, nullptr},
      {"scale", scale, kFast, nullptr},
  }};
  const auto* const table =
      static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (table == nullptr) return nullptr;
  const bool is_known = table->version.major == similis_binding::kMajorVersion &&
                        table->allocate != nullptr && table->describe != nullptr &&
                        table->current_stream != nullptr;
  if (is_known) torch_table = table;
  PyObject* const functions = PyTuple_New(is_known ? methods.size() : 0);
  for (std::size_t i = 0; functions != nullptr && is_known && i < methods.size(); ++i) {
    PyTuple_SetItem(functions, static_cast<std::ptrdiff_t>(i),
        PyCFunction_NewEx(&methods[i], nullptr, nullptr));
  }
  return functions;
}
