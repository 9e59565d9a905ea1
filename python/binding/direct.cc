// SPDX-License-Identifier: Apache-2.0
// Calls of the library as builtin functions of Python, for torch's tensors.
//
// torch lends tensors, its stream and its allocator by a table of C functions, so a tensor is a
// description on the stack, in a tenth of a microsecond. Others come by ctypes.
//
// call(operation, options, threads, tensors…) is similis_call(): operation is a position in
// similis_schema()'s list, options the address of a struct, threads the number of threads that the
// call may use, and a tensor that is left out is None. scale(tensor, factor, threads) is
// similis_scale(). Both return the status of the C interface.
//
// The others are the steps of the fast path, _torch/plain.py, which has another way for what they
// do not take. They raise what torch raises for a tensor it cannot lend.
//
// are_plain(tensors…): whether tensors are nothing but memory while nobody but a compiler looks.
//
// compute(plan, tensors, models): allocates a tensor like each model, calls the library, and
// returns a tuple of the new tensors; None if the library refuses the call, or a tensor has no
// memory, which the library would take for one that is left out.
//
// multiply(factor, tensors…): multiplies tensors in place; a status, or kNotTaken.
//
// are_same(tuple, tuple): whether both hold the same objects.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "python/binding/exchange.h"
#include "python/binding/framework_memory.h"
#include "python/binding/stable_abi.h"
#include "similis/c/core.h"

namespace {

using similis_binding::ExchangeTable;
using similis_binding::FrameworkMemory;

constexpr similis_status kNotTaken = -1;

// torch's table, and what is called of its Python. Set once, before any function is called.
struct Torch {
  const ExchangeTable* table;
  PyObject *empty_like, *dense_like;          // functions
  PyObject *tensor, *parameter, *is_negated;  // types, and a method
  PyObject *forward_mode, *level;             // a module, and the name of its attribute
  PyObject* threads;                          // a function
  std::array<PyObject*, 4> looks;             // functions: modes, a trace, a profiler, transforms
};
Torch torch{};

bool is_none(const PyObject* object) { return object == &_Py_NoneStruct; }

PyObject* none() {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

PyObject* raise(const char* sentence) {
  PyErr_SetString(PyExc_TypeError, sentence);
  return nullptr;
}

// The tensors of a call. Once one is wrong, an exception is set.
class Tensors {
 public:
  static constexpr std::size_t kMost = 24;

  // None is a tensor that is left out.
  void add(PyObject* object) {
    if (!are_right_) return;
    if (count_ == kMost) {
      are_right_ = false;
      raise("similis: the binding takes fewer tensors");
      return;
    }
    objects_[count_] = object;
    similis_tensor* const tensor = &described_[count_++];
    if (is_none(object)) return;
    are_right_ = torch.table->describe(object, tensor) == 0;
    have_memory_ &= are_right_ && tensor->data != nullptr;
  }

  // The tensor at a place, null for one that is left out.
  const similis_tensor* at(std::size_t place) const {
    return place >= count_ || is_none(objects_[place]) ? nullptr : &described_[place];
  }
  // The description of an object that has been added, or null.
  const similis_tensor* of(const PyObject* object) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (objects_[i] == object) return at(i);
    }
    return nullptr;
  }

  bool begin_with_one() {
    if (are_right_ && at(0) == nullptr) {
      are_right_ = false;
      raise("similis: the binding takes a tensor first");
    }
    return are_right_;
  }
  bool are_right() const { return are_right_; }
  bool have_memory() const { return have_memory_; }
  std::size_t count() const { return count_; }

 private:
  std::array<PyObject*, kMost> objects_;
  std::array<similis_tensor, kMost> described_;
  std::size_t count_ = 0;
  bool are_right_ = true, have_memory_ = true;
};

// The arguments of similis_call().
struct Call {
  std::int64_t operation = 0, options = 0, threads = 0;
  std::array<const similis_tensor*, Tensors::kMost> tensors;
  std::size_t count = 0;
};

bool read(PyObject* object, std::int64_t* number) {
  *number = PyLong_AsLongLong(object);
  return *number != -1 || PyErr_Occurred() == nullptr;
}

// Sets *status to that of a function of (similis_execution), which runs without the interpreter's
// lock. False with an exception if torch has no stream.
template <class Function>
bool run(
    similis_device device, std::int64_t threads, similis_status* status, const Function& function) {
  void* stream = nullptr;
  if (device.type == SIMILIS_CUDA &&
      torch.table->current_stream(device.type, device.index, &stream) != 0) {
    return false;
  }
  void* const thread = PyEval_SaveThread();
  {
    FrameworkMemory memory(*torch.table);
    *status = function(memory.execution_on(device, stream, threads));
  }
  PyEval_RestoreThread(thread);
  return true;
}

bool run(const Call& call, similis_status* status) {
  return run(call.tensors[0]->device, call.threads, status, [&](const auto& execution) {
    return similis_call(static_cast<std::int32_t>(call.operation), call.tensors.data(),
        static_cast<std::int32_t>(call.count), reinterpret_cast<const void*>(call.options),
        &execution);
  });
}

bool scale_by(const similis_tensor& tensor, const similis_tensor& factor, std::int64_t threads,
    similis_status* status) {
  return run(tensor.device, threads, status,
      [&](const auto& execution) { return similis_scale(&tensor, &factor, &execution); });
}

PyObject* call(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  constexpr std::ptrdiff_t kFirstTensor = 3;
  Call call;
  if (count <= kFirstTensor) return raise("similis: the binding lacks an argument");
  if (!read(given[0], &call.operation) || !read(given[1], &call.options) ||
      !read(given[2], &call.threads)) {
    return nullptr;
  }
  Tensors tensors;
  for (std::ptrdiff_t i = kFirstTensor; i < count; ++i) tensors.add(given[i]);
  if (!tensors.begin_with_one()) return nullptr;
  for (; call.count < tensors.count(); ++call.count) {
    call.tensors[call.count] = tensors.at(call.count);
  }
  similis_status status = SIMILIS_OK;
  return run(call, &status) ? PyLong_FromLong(status) : nullptr;
}

PyObject* scale(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  if (count != 3) return raise("similis: scale takes a tensor, a factor and a number of threads");
  std::int64_t threads = 0;
  if (!read(given[2], &threads)) return nullptr;
  Tensors tensors;
  tensors.add(given[0]);
  tensors.add(given[1]);
  if (!tensors.begin_with_one()) return nullptr;
  if (tensors.at(1) == nullptr) return raise("similis: scale takes a factor");
  similis_status status = SIMILIS_OK;
  const bool has_run = scale_by(*tensors.at(0), *tensors.at(1), threads, &status);
  return has_run ? PyLong_FromLong(status) : nullptr;
}

// Returns 1 if the result of a function is true, 0 for None, False and 0, and -1 if it is null.
// Frees the result.
int is_true(PyObject* result) {
  if (result == nullptr) return -1;
  const int is = PyObject_IsTrue(result);
  Py_DecRef(result);
  return is;
}

// The number of threads that torch uses.
std::int64_t threads_of_torch() {
  PyObject* const result = PyObject_CallFunctionObjArgs(torch.threads, nullptr);
  std::int64_t threads = 0;
  if (result == nullptr || !read(result, &threads)) PyErr_Clear();  // the library's own then
  if (result != nullptr) Py_DecRef(result);
  return threads;
}

// Returns true if no mode, trace, profiler, transform of torch.func or forward mode sees operators.
bool nobody_looks() {
  for (PyObject* const each : torch.looks) {
    if (is_true(PyObject_CallFunctionObjArgs(each, nullptr)) != 0) return false;
  }
  PyObject* const level = PyObject_GetAttr(torch.forward_mode, torch.level);
  std::int64_t depth = 0;
  const bool is_known = level != nullptr && read(level, &depth);
  if (level != nullptr) Py_DecRef(level);
  return is_known && depth < 0;
}

// Returns true if a tensor is of torch's own types, and not negated lazily.
bool is_plain(PyObject* object) {
  PyObject* const type = PyObject_Type(object);
  Py_DecRef(type);  // the object keeps it
  return (type == torch.tensor || type == torch.parameter) &&
         is_true(PyObject_CallFunctionObjArgs(torch.is_negated, object, nullptr)) == 0;
}

PyObject* are_plain(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  bool are = nobody_looks();
  for (std::ptrdiff_t i = 0; are && i < count; ++i) are = is_none(given[i]) || is_plain(given[i]);
  return PyErr_Occurred() != nullptr ? nullptr : PyBool_FromLong(are);
}

// Returns true if layouts.py leaves such an image as it is.
bool is_usual_image(const similis_tensor& image) {
  constexpr int kUnsigned = 1, kFloat = 2, kBfloat = 4;
  const int code = image.dtype.code, bits = image.dtype.bits;
  const bool is_float = code == kFloat || code == kBfloat;
  if (image.ndim < 4 || !(is_float || (code == kUnsigned && bits == 8))) return false;
  return image.ndim > 4 || (image.shape[3] != 3 && image.shape[3] != 4);
}

bool is_dense(const similis_tensor& tensor) {
  std::int64_t dense = 1;
  for (std::int32_t axis = tensor.ndim; axis-- > 0; dense *= tensor.shape[axis]) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != dense) return false;
  }
  return true;
}

// The plan of a compute() in bytes: three 64-bit numbers and the place of each tensor of the call.
// The tensors that are given have places from 0 on, the new ones from kFirstNew; a place where
// there is none stands for a tensor that is left out.
struct Plan {
  static constexpr std::size_t kFirstNew = 8;

  struct Numbers {
    std::int64_t operation, options, of_images;
  } numbers;
  const unsigned char* places;
  std::size_t count;

  bool is_read_from(PyObject* bytes) {
    char* start = nullptr;
    std::ptrdiff_t size = 0;
    if (PyBytes_AsStringAndSize(bytes, &start, &size) != 0) return false;
    count = static_cast<std::size_t>(size) - sizeof numbers;
    if (static_cast<std::size_t>(size) <= sizeof numbers || count > Tensors::kMost) {
      return raise("similis: the binding takes other plans") != nullptr;
    }
    std::memcpy(&numbers, start, sizeof numbers);
    places = reinterpret_cast<const unsigned char*>(start + sizeof numbers);
    return true;
  }
};

// Adds a tensor like each model to those of the call, and returns a tuple of them; null with an
// exception. Gradients of images keep the order of their axes in memory, as torch's do.
PyObject* allocate(PyObject* models, bool of_images, Tensors* tensors) {
  const std::ptrdiff_t count = PyTuple_Size(models);
  if (count < 0) return nullptr;
  PyObject* const results = PyTuple_New(count);
  for (std::ptrdiff_t i = 0; results != nullptr && i < count; ++i) {
    PyObject* const model = PyTuple_GetItem(models, i);
    const similis_tensor* const described = tensors->of(model);
    const bool keeps_order = of_images || described == nullptr || is_dense(*described);
    PyObject* const like = keeps_order ? torch.empty_like : torch.dense_like;
    PyObject* const result =
        is_none(model) ? none() : PyObject_CallFunctionObjArgs(like, model, nullptr);
    if (result != nullptr) {
      PyTuple_SetItem(results, i, result);
      tensors->add(result);
    }
    if (result == nullptr || !tensors->are_right()) {
      Py_DecRef(results);
      return nullptr;
    }
  }
  return results;
}

PyObject* compute(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  Plan plan{};
  if (count != 3) return raise("similis: compute takes a plan, tensors and models");
  if (!plan.is_read_from(given[0])) return nullptr;
  Tensors tensors;
  const std::ptrdiff_t operands = PyTuple_Size(given[1]);
  if (operands < 0) return nullptr;
  if (operands > static_cast<std::ptrdiff_t>(Plan::kFirstNew)) {
    return raise("similis: compute takes fewer tensors");
  }
  for (std::ptrdiff_t i = 0; i < operands; ++i) tensors.add(PyTuple_GetItem(given[1], i));
  if (!tensors.begin_with_one()) return nullptr;
  while (tensors.count() < Plan::kFirstNew) tensors.add(&_Py_NoneStruct);
  const bool of_images = plan.numbers.of_images != 0;
  if (!tensors.have_memory() || (of_images && !is_usual_image(*tensors.at(0)))) return none();
  PyObject* const results = allocate(given[2], of_images, &tensors);
  if (results == nullptr) return nullptr;
  Call call{.operation = plan.numbers.operation,
      .options = plan.numbers.options,
      .threads = threads_of_torch()};
  for (; call.count < plan.count; ++call.count) {
    call.tensors[call.count] = tensors.at(plan.places[call.count]);
  }
  if (call.tensors[0] == nullptr) raise("similis: the plan takes a tensor first");
  similis_status status = SIMILIS_OK;
  const bool has_run = PyErr_Occurred() == nullptr && run(call, &status);
  if (has_run && status == SIMILIS_OK) return results;
  Py_DecRef(results);
  return has_run ? none() : nullptr;
}

bool is_one(const similis_tensor& number) {
  constexpr int kFloat = 2;
  if (number.device.type != SIMILIS_CPU || number.dtype.code != kFloat) return false;
  const char* const start = static_cast<const char*>(number.data) + number.byte_offset;
  if (number.dtype.bits == 32) return *reinterpret_cast<const float*>(start) == 1;
  return number.dtype.bits == 64 && *reinterpret_cast<const double*>(start) == 1;
}

PyObject* not_taken() {
  PyErr_Clear();
  return PyLong_FromLong(kNotTaken);
}

PyObject* multiply(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  if (count < 1) return raise("similis: multiply takes a factor and tensors");
  Tensors tensors;
  if (!nobody_looks() || !is_plain(given[0])) return not_taken();
  tensors.add(given[0]);
  if (!tensors.are_right() || !tensors.have_memory()) return not_taken();
  const similis_tensor& factor = *tensors.at(0);
  similis_status status = SIMILIS_OK;
  if (is_one(factor)) return PyLong_FromLong(status);
  for (std::ptrdiff_t i = 1; i < count; ++i) tensors.add(given[i]);
  if (!tensors.are_right()) return nullptr;
  const std::int64_t threads = threads_of_torch();
  for (std::size_t i = 1; status == SIMILIS_OK && i < tensors.count(); ++i) {
    const similis_tensor* const tensor = tensors.at(i);
    if (tensor != nullptr && !scale_by(*tensor, factor, threads, &status)) return nullptr;
  }
  return PyLong_FromLong(status);
}

PyObject* are_same(PyObject*, PyObject* const* given, std::ptrdiff_t count) {
  if (count != 2) return raise("similis: are_same takes two tuples");
  const std::ptrdiff_t size = PyTuple_Size(given[0]), other = PyTuple_Size(given[1]);
  if (size < 0 || other < 0) return nullptr;
  bool are = size == other;
  for (std::ptrdiff_t i = 0; are && i < size; ++i) {
    are = PyTuple_GetItem(given[0], i) == PyTuple_GetItem(given[1], i);
  }
  return PyBool_FromLong(are);
}

}  // namespace

/// A tuple of call, scale, are_plain, compute, multiply and are_same for the tensors of a torch
/// with this capsule, whose functions and types come as a tuple in the order of Torch above; an
/// empty tuple if the table lacks a function. Null with an exception if it is no such capsule. With
/// the interpreter's lock, as ctypes.PyDLL has it.
extern "C" __attribute__((visibility("default"))) PyObject* similis_direct_functions(
    PyObject* capsule, PyObject* of_torch) {
  constexpr int kFast = 0x80;  // METH_FASTCALL
  static std::array<PyMethodDef, 6> methods{{
      {"call", call, kFast, nullptr},
      {"scale", scale, kFast, nullptr},
      {"are_plain", are_plain, kFast, nullptr},
      {"compute", compute, kFast, nullptr},
      {"multiply", multiply, kFast, nullptr},
      {"are_same", are_same, kFast, nullptr},
  }};
  const auto* const table =
      static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (table == nullptr) return nullptr;
  const bool is_known = table->version.major == similis_binding::kMajorVersion &&
                        table->allocate != nullptr && table->describe != nullptr &&
                        table->current_stream != nullptr;
  if (!is_known) return PyTuple_New(0);
  torch.table = table;
  torch.level = PyUnicode_InternFromString("_current_level");
  if (torch.level == nullptr) return nullptr;
  std::ptrdiff_t place = 0;
  for (PyObject** const each : {&torch.empty_like, &torch.dense_like, &torch.tensor,
           &torch.parameter, &torch.is_negated, &torch.forward_mode, &torch.threads,
           &torch.looks[0], &torch.looks[1], &torch.looks[2], &torch.looks[3]}) {
    *each = PyTuple_GetItem(of_torch, place++);
    if (*each == nullptr) return nullptr;
    Py_IncRef(*each);
  }
  PyObject* const functions = PyTuple_New(methods.size());
  for (std::size_t i = 0; functions != nullptr && i < methods.size(); ++i) {
    PyTuple_SetItem(functions, static_cast<std::ptrdiff_t>(i),
        PyCFunction_NewEx(&methods[i], nullptr, nullptr));
  }
  return functions;
}
