/* SPDX-License-Identifier: Apache-2.0
 * The vocabulary of the C interface: status, tensors, execution of a call.
 *
 * Every function that can fail returns a status. Images are read from, and results written to, the
 * memory of the caller's tensors; nothing is kept after a call returns, except work queued on a
 * stream. Options begin with struct_size and are set up by their _DEFAULTS macro:
 *
 *   similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
 *   options.padding = SIMILIS_PADDING_SAME;
 *
 * A program compiled with an older similis passes a smaller struct; missing members have their
 * defaults. Enumerations are 32-bit integers with named values, so that their size is the same for
 * everyone.
 */
#ifndef SIMILIS_C_CORE_H
#define SIMILIS_C_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "similis/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The outcome of a call. */
typedef int32_t similis_status;
enum {
  SIMILIS_OK = 0,
  SIMILIS_INVALID_ARGUMENT = 1, /**< the caller's mistake; nothing was written */
  SIMILIS_DEVICE_ERROR = 2,     /**< a device or its driver is missing or failed */
  SIMILIS_FAILURE = 3           /**< anything else, such as no memory */
};

/** The last failure on this thread in one sentence that names the operation, the argument, the
 * value it got and the values it takes. Empty if there was none. Valid until the next failure on
 * this thread. */
SIMILIS_API const char* similis_last_error(void);

/** The version of the library in use, such as "0.1.0"; SIMILIS_VERSION is that of the headers. */
SIMILIS_API const char* similis_version(void);

/** The operations in JSON, for bindings: of each its name, its options with their types, bounds,
 * defaults and places in its options struct, its tensors and its backends. Valid as long as the
 * library is loaded. */
SIMILIS_API const char* similis_schema(void);

/** DLPack's DLDevice. */
typedef struct similis_device {
  int32_t type; /**< SIMILIS_CPU, SIMILIS_CUDA, SIMILIS_CUDA_HOST or SIMILIS_VULKAN */
  int32_t index;
} similis_device;
enum {
  SIMILIS_CPU = 1,
  SIMILIS_CUDA = 2,
  SIMILIS_CUDA_HOST = 3, /**< pinned memory of the host, used from the CPU */
  SIMILIS_VULKAN = 7     /**< a tensor's data is then a VkBuffer */
};

/** DLPack's DLDataType. */
typedef struct similis_dtype {
  uint8_t code;   /**< 0 integer, 1 unsigned integer, 2 float, 4 bfloat, 6 bool */
  uint8_t bits;   /**< bits of one element */
  uint16_t lanes; /**< 1 */
} similis_dtype;
#define SIMILIS_BOOL \
  { 6, 8, 1 }
#define SIMILIS_INT16 \
  { 0, 16, 1 }
#define SIMILIS_INT32 \
  { 0, 32, 1 }
#define SIMILIS_UINT8 \
  { 1, 8, 1 }
#define SIMILIS_UINT16 \
  { 1, 16, 1 }
#define SIMILIS_FLOAT16 \
  { 2, 16, 1 }
#define SIMILIS_BFLOAT16 \
  { 4, 16, 1 }
#define SIMILIS_FLOAT32 \
  { 2, 32, 1 }
#define SIMILIS_FLOAT64 \
  { 2, 64, 1 }

/** An array of the caller, laid out as DLPack's DLTensor: a pointer to one is a pointer to the
 * other. */
typedef struct similis_tensor {
  void* data;
  similis_device device;
  int32_t ndim; /**< axes; at most 8 */
  similis_dtype dtype;
  int64_t* shape;       /**< ndim extents; not read if ndim is 0 */
  int64_t* strides;     /**< elements between neighbours along each axis; NULL: dense, row-major */
  uint64_t byte_offset; /**< bytes from data to the first element */
} similis_tensor;

/** The source of memory for workspaces. NULL functions: the library's own memory. */
typedef struct similis_allocator {
  /** Memory on the device, aligned to 256 bytes, ready for work queued on the stream from now on;
   * NULL when there is none left. */
  void* (*allocate)(void* context, size_t bytes, similis_device device, void* stream);
  /** Gives it back once the work queued on the stream so far is done. NULL: nothing is given back.
   */
  void (*release)(void* context, void* pointer, size_t bytes, similis_device device, void* stream);
  void* context;
} similis_allocator;

/** One piece of work of many; it may run on any thread. */
typedef void (*similis_task)(void* task_context, int64_t index);

/** Runs independent pieces of work. A NULL function: the library's pool, one thread per core. */
typedef struct similis_runner {
  /** Calls task(task_context, index) once for each index in [0, count), on any threads, in any
   * order, and returns when all have returned. */
  void (*run)(void* runner_context, similis_task task, void* task_context, int64_t count);
  void* context;
} similis_runner;

/** Everything on the calling thread. */
SIMILIS_API similis_runner similis_serial_runner(void);

/** A fixed set of threads. */
typedef struct similis_thread_pool similis_thread_pool;
/** threads: number of threads, the caller included, up to 1024; 0: one per core. */
SIMILIS_API similis_status similis_thread_pool_create(int32_t threads, similis_thread_pool** pool);
/** No call may be using the pool. NULL is allowed. */
SIMILIS_API void similis_thread_pool_destroy(similis_thread_pool* pool);
/** Valid as long as the pool. */
SIMILIS_API similis_runner similis_thread_pool_runner(similis_thread_pool* pool);

/** The execution of a call. Functions take NULL for the defaults. */
typedef struct similis_execution {
  size_t struct_size;
  void* stream; /**< cudaStream_t; NULL is the default stream. Ignored on the CPU */
  similis_allocator allocator;
  similis_runner runner;
  /** A device of c/vulkan.h. Arrays on the CPU are then copied to it, and results back, before the
   * call returns. NULL: none */
  const struct similis_vulkan_device* vulkan;
} similis_execution;
#define SIMILIS_EXECUTION_DEFAULTS \
  { sizeof(similis_execution), NULL, {NULL, NULL, NULL}, {NULL, NULL}, NULL }

/** Calls an operation by its position in similis_schema()'s list, so that a binding needs no
 * function's signature.
 * tensors: the schema's `operands`, then its options and members of `request` of type "tensor",
 * then its `outputs`, in their order; NULL for what is left out. count: how many they are.
 * options: the operation's struct, whose tensors are not read; NULL: defaults.
 * Functions that take more, such as similis_invert(), are called by their names. */
SIMILIS_API similis_status similis_call(int32_t operation, const similis_tensor* const* tensors,
    int32_t count, const void* options, const similis_execution* execution);

/** Multiplies a tensor in place by a factor of one element on its device, such as a gradient by the
 * upstream gradient. A factor of 1 leaves the memory alone; on a GPU the factor is read there, and
 * nothing waits for it. Both are float16, bfloat16, float32 or float64, of any strides. */
SIMILIS_API similis_status similis_scale(
    const similis_tensor* tensor, const similis_tensor* factor, const similis_execution* execution);

/** The pixels that a window sees outside the image. */
enum {
  SIMILIS_PADDING_VALID = 0,      /**< nothing: only windows that lie inside count */
  SIMILIS_PADDING_SAME = 1,       /**< zeros */
  SIMILIS_PADDING_REFLECT = 2,    /**< the image mirrored at its outermost pixels: c b | a b c */
  SIMILIS_PADDING_REPLICATE = 3,  /**< the outermost pixel: a a | a b c */
  SIMILIS_PADDING_RENORMALIZE = 4 /**< nothing: the cut window's weights sum to 1 again */
};

/** The weights of a window's pixels: all alike, or exp(-d²/2σ²). */
enum { SIMILIS_WINDOW_BOX = 0, SIMILIS_WINDOW_GAUSSIAN = 1 };

/** The result to which the map of values is reduced. */
enum {
  SIMILIS_REDUCTION_MEAN = 0,       /**< one number: a tensor without axes */
  SIMILIS_REDUCTION_SUM = 1,        /**< likewise */
  SIMILIS_REDUCTION_NONE = 2,       /**< the map */
  SIMILIS_REDUCTION_PER_IMAGE = 3,  /**< the mean of each image: [N] */
  SIMILIS_REDUCTION_PER_CHANNEL = 4 /**< the mean of each channel of each image: [N,C] */
};

/** The similarity of two images, or one minus it as a loss. */
enum { SIMILIS_FORM_SIMILARITY = 0, SIMILIS_FORM_LOSS = 1 };

#ifdef __cplusplus
}
#endif

#endif
