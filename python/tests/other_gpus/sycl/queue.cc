// SPDX-License-Identifier: Apache-2.0
// A SYCL queue on a CPU, in place of the one that torch has for Intel's GPUs.
#include <cstdio>
#include <sycl/sycl.hpp>

extern "C" void* queue_on_cpu() {
  static sycl::queue queue(sycl::cpu_selector_v, sycl::property::queue::in_order{});
  const sycl::device device = queue.get_device();
  std::printf("SYCL runs on %s, driver %s\n", device.get_info<sycl::info::device::name>().c_str(),
      device.get_info<sycl::info::device::driver_version>().c_str());
  std::fflush(stdout);
  return &queue;
}

extern "C" void wait(void* queue) { static_cast<sycl::queue*>(queue)->wait_and_throw(); }
