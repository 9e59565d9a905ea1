// SPDX-License-Identifier: Apache-2.0
// The version of similis, for C and C++; the build reads it from here.
#ifndef SIMILIS_VERSION_H
#define SIMILIS_VERSION_H

#define SIMILIS_VERSION_MAJOR 0
#define SIMILIS_VERSION_MINOR 1
#define SIMILIS_VERSION_PATCH 0
#define SIMILIS_VERSION "0.1.0"

#endif
