// SPDX-License-Identifier: Apache-2.0
// SIMILIS_API marks the functions that the shared libraries export, for C and C++.
#ifndef SIMILIS_API_H
#define SIMILIS_API_H

#if defined(SIMILIS_STATIC)
#define SIMILIS_API
#else
#define SIMILIS_API __attribute__((visibility("default")))
#endif

#endif
