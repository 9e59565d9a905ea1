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
/** No call may be using the device. NULL is allowed. */
SIMILIS_API void similis_vulkan_device_destroy(similis_vulkan_device* device);
/** For tensors whose data is a VkBuffer of this device. */
SIMILIS_API similis_device similis_vulkan_device_id(const similis_vulkan_device* device);
/** The device's name, in the driver's words. Valid as long as the device. */
SIMILIS_API const char* similis_vulkan_device_name(const similis_vulkan_device* device);

#ifdef __cplusplus
}
#endif

#endif
