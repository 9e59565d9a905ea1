// SPDX-License-Identifier: Apache-2.0
// All of similis for C++: one line per header.
#pragma once

#include "similis/coordinates.hpp"
#include "similis/dlpack.hpp"
#include "similis/error.hpp"
#include "similis/execution.hpp"
#include "similis/fields.hpp"
#include "similis/gradient.hpp"
#include "similis/info.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "similis/lncc.hpp"
#include "similis/ms_ssim.hpp"
#include "similis/mutual_information.hpp"
#include "similis/ncc.hpp"
#include "similis/pixel_error.hpp"
#include "similis/reduction.hpp"
#include "similis/ssim.hpp"
#include "similis/ssimulacra2.hpp"
#include "similis/tensor.hpp"
#include "similis/version.h"
#include "similis/warp.hpp"
#include "similis/window.hpp"
