/* SPDX-License-Identifier: Apache-2.0
 * GPUs of any vendor, through Vulkan. The loader is opened when a device is asked for.
 *
 *   similis_vulkan_device* device = NULL;
 *   similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
 *   if (similis_vulkan_device_create(0, &device) == SIMILIS_OK) execution.vulkan = device;
 */
#ifndef SIMILIS_C_VULKAN_H
#define SIMILIS_C_VULKAN_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A GPU that is used through Vulkan. */
typedef struct similis_vulkan_device similis_vulkan_device;
/** index: the device's number, in the order of `similis info`. */
SIMILIS_API similis_status similis_vulkan_device_create(
    int32_t index, similis_vulkan_device** device);

/** A device that the caller has opened, as an engine does. */
typedef struct similis_vulkan_handles {
  size_t struct_size;
  void* instance;        /**< VkInstance, made for Vulkan 1.2 or later */
  void* physical_device; /**< VkPhysicalDevice */
  void* device;          /**< VkDevice; shaderInt64 and timelineSemaphore are enabled */
  void* queue;           /**< VkQueue that computes */
  uint32_t queue_family; /**< the family of the queue */
  int32_t has_float64;   /**< 1: shaderFloat64 is enabled; scores are the same, but sooner */
  /** vkGetInstanceProcAddr of the loader that made the instance; NULL: that of libvulkan.so.1. */
  void (*get_instance_proc_addr)(void);
  /** Called around each submission, as Vulkan lets one thread at a time use a queue. NULL: no other
   * thread uses the queue during a call. */
  void (*lock_queue)(void* context);
  void (*unlock_queue)(void* context);
  void* context; /**< what these two are called with */
} similis_vulkan_handles;
#define SIMILIS_VULKAN_HANDLES_DEFAULTS \
  { sizeof(similis_vulkan_handles), NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL }
/** A device of the caller's. Kernels and copies go to the caller's queue: they see what was
 * submitted to it before. Later work of the caller's there sees their results behind a barrier that
 * waits for compute shaders and copies. similis_vulkan_device_destroy() comes before the device is
 * destroyed. */
SIMILIS_API similis_status similis_vulkan_device_from_handles(
    const similis_vulkan_handles* handles, similis_vulkan_device** device);
/** No call may be using the device. On a caller's device it waits for submitted work and destroys
 * only what similis made; no tensor that similis allocated there may be left. NULL is allowed. */
SIMILIS_API void similis_vulkan_device_destroy(similis_vulkan_device* device);
/** For tensors whose data is a VkBuffer of this device. */
SIMILIS_API similis_device similis_vulkan_device_id(const similis_vulkan_device* device);
/** The device's name, in the driver's words. Valid as long as the device. */
SIMILIS_API const char* similis_vulkan_device_name(const similis_vulkan_device* device);

#ifdef __cplusplus
}
#endif

#endif
