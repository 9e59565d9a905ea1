/* SPDX-License-Identifier: Apache-2.0
 * All of similis for C: one line per header. */
#ifndef SIMILIS_SIMILIS_H
#define SIMILIS_SIMILIS_H

#include "similis/c/core.h"
#include "similis/c/fields.h"
#include "similis/c/libvmaf_ssim.h"
#include "similis/c/lncc.h"
#include "similis/c/ms_ssim.h"
#include "similis/c/mutual_information.h"
#include "similis/c/ncc.h"
#include "similis/c/pixel_error.h"
#include "similis/c/register.h"
#include "similis/c/smooth.h"
#include "similis/c/ssim.h"
#include "similis/c/ssimulacra2.h"
#include "similis/c/threads.h"
#include "similis/c/vmaf.h"
#include "similis/c/vulkan.h"
#include "similis/c/warp.h"
#include "similis/version.h"

#endif
