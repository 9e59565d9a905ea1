// SPDX-License-Identifier: Apache-2.0
// The texts below the options in --help.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace similis::cli {

/// The text with its lines broken anew, none longer than `columns`. Lines that begin with two
/// spaces are prose, joined to those before; others and empty lines stay apart.
std::string wrapped(std::string_view text, std::size_t columns);

inline constexpr const char* kExitStatus = R"(Exit status:
  0  success
  1  something could not be read, computed or written; stderr names it
  2  the command line is wrong
  3  a score misses a limit of --fail-below or --fail-above
  128 + N  signal N ended the run; its scores so far are written)";

// For a command that has no scores.
inline constexpr const char* kWholeExitStatus = R"(Exit status:
  0  success
  1  something could not be read, computed or written; stderr names it
  2  the command line is wrong
  128 + N  signal N ended the run; nothing is written)";

inline constexpr const char* kProgramExamples = R"(Examples:
  similis compare original.png compressed.jpg
  similis compare original.y4m decoded.mp4 --format json -o scores.json
  similis compare originals/ compressed/ --format csv -o scores.csv
  similis compare original.png compressed.jpg --map ssim=losses.png
  similis warp moving.nii.gz --reference fixed.nii.gz --transform affine.mat -o warped.nii.gz
  similis compare --help
)";

inline constexpr const char* kCompareExamples = R"(Examples:
  similis compare original.png compressed.jpg
  similis compare original.png compressed.jpg -m ssim -m mse --format json
  similis compare original.png compressed.jpg -m ssim=window_size=7:padding=same
  similis compare original.png compressed.jpg --map ssim=losses.png
  similis compare originals/ compressed/ --format csv -o scores.csv
  curl -s https://example.org/b.webp | similis compare a.png -
  similis compare original.y4m encoded.mkv --frames 0:250 -m psnr -m ssim
  similis compare fixed.nii.gz warped.nii.gz -m ssim --map ssim=slices.png
  similis compare a.yuv b.yuv --size 1920x1080 --pix-fmt yuv420p10le
  ffmpeg -v error -i b.mkv -f yuv4mpegpipe - | similis compare a.y4m -
  similis compare 'original-%04d.png' 'encoded-%04d.png' -m ssimulacra2 --fps 24
  similis compare original.y4m crf20.mkv crf26.mkv crf32.mkv -m psnr,ssim
  similis compare original.png new.png --fail-below ssim=0.99
  similis compare -- -odd-name.png 'star*[1]?.png'
)";

inline constexpr const char* kDifferences = R"(Pictures that differ in kind:
  Sizes must match, unless --resize and --crop make them. Grey becomes three equal channels, 8 bits
  become 16 (v·257). Opaque alpha is dropped; transparent pixels need --background. If the colour spaces differ, the distorted picture
  is converted to the reference's, and the settings in the results say so. PNG, JPEG, WebP, AVIF,
  JXL, TIFF, BMP, QOI, PBM, PGM, PPM, PAM, PFM and EXR are read by similis, other formats by ffmpeg.
  PFM, EXR and some TIFF have floats, which are compared as stored with floats, with a data_range of
  1 unless -m gives another. 'name%05d.png' and 'name*.png' stand for a clip of pictures.

Video:
  similis reads y4m, raw YUV with --size and --pix-fmt, and every format that ffmpeg decodes, none
  of them converted; from a pipe it reads y4m and raw YUV. psnr, mse, mae and ssim score the code
  values of each plane (psnr-y, psnr-cb, psnr-cr); ms-ssim scores luma. Size, chroma subsampling,
  bit depth and range must match, or be matched by --resize, --crop, --depth and --range. Frames are
  compared by their numbers, or with --match-rate nearest by time. If the
  lengths differ, the frames that both videos have are scored, with a note. If a video is cut off,
  its frames before the cut are scored, and the exit status is 1.

Volumes:
  similis reads NIfTI-1, NIfTI-2, MetaImage (.mha, .mhd) and NRRD, compressed or not. The grids must
  agree to a hundredth of a voxel; `similis warp` brings one volume onto the grid of the other.
  data_range is the reference's largest minus smallest value. Each volume of a time series is a
  frame. --map draws the middle slices across z, y and x.

Directories:
  Files are matched by name, then a.png with a.jpg if each side has just one a.*. Files without a
  match are noted on stderr; hidden files and subdirectories are ignored. If a file is broken, the
  error names it, the others are scored, and the exit status is 1. In JSON and XML, settings of a
  metric that differ between the pairs are given with each pair.
)";

inline constexpr const char* kResults = R"(Results:
  Only results go to stdout. JSON and XML have each metric's mean, min, max, stdev, median, harmonic
  mean and percentiles, and every frame's values; a picture is one frame. A value that is not
  finite, such as the psnr of equal pictures, is null in JSON. Results do not depend on the number
  of threads. With --threads 1 files are read and scored on one thread, since a job of one core has
  no other; two threads read and score at the same time.
)";

inline constexpr const char* kVmafExamples = R"(Examples:
  similis vmaf -r original.y4m -d decoded.y4m --json -o scores.json
  similis vmaf -r original.y4m -d decoded.y4m -m version=vmaf_v0.6.1 \
    -m version=vmaf_v0.6.1neg:name=vmaf_neg --feature psnr -o scores.xml
  similis vmaf -r a.yuv -d b.yuv -w 1920 -h 1080 -p 420 -b 10 -n --feature float_ssim=scale=1 \
    --csv -o /dev/stdout
)";

inline constexpr const char* kWarpExamples = R"(Examples:
  similis warp moving.nii.gz --reference fixed.nii.gz -o resampled.nii.gz
  similis warp moving.nii.gz -r fixed.nii.gz -t warp.nii.gz -t affine.mat -o warped.nii.gz
  similis warp fixed.nii.gz -r moving.nii.gz -t '[affine.mat,1]' -t inverse.nii.gz -o back.nii.gz
  similis warp labels.nii.gz -r fixed.nii.gz -t affine.mat --mode label -o warped.nii.gz
)";

inline constexpr const char* kWarpFiles = R"(Files:
  Volumes are NIfTI, MetaImage (.mha, .mhd) or NRRD, compressed or not; the result is NIfTI. A time
  series is warped frame by frame. Affine maps are .mat, .txt and .tfm files of ITK and ANTs;
  displacement fields are NIfTI with a vector in mm at each voxel (dim[5] is 3); .h5 files hold
  either, or composites of both. Points and vectors have ITK's axes (left, posterior, superior).
  Transforms are applied in the order of antsApplyTransforms. nearest and label keep the sample type
  of IMAGE, unless it is scaled; otherwise the output is float32, or float64 if IMAGE needs it.
)";

inline constexpr const char* kRegisterExamples = R"(Examples:
  similis register fixed.nii.gz moving.nii.gz -o result/
  similis register fixed.nii.gz moving.nii.gz -o result_ --stages rigid --init moments
  similis register t1.nii.gz t2.nii.gz -o result/ -m mi --preset accurate
  similis register fixed.nii.gz moving.nii.gz -o result/ --fixed-mask healthy.nii.gz
  similis warp other.nii.gz -r fixed.nii.gz -t result/1Warp.nii.gz -t result/0GenericAffine.mat \
    -o warped.nii.gz
)";

inline constexpr const char* kRegisterFiles = R"(Files:
  PREFIX0GenericAffine.mat and PREFIX1Warp.nii.gz map points of FIXED to points of MOVING, as ANTs'
  files of these names do; PREFIX1InverseWarp.nii.gz is the inverse of the warp alone. Beside them
  stand PREFIXWarped.nii.gz, MOVING on the grid of FIXED, PREFIXInverseWarped.nii.gz, FIXED on that
  of MOVING, PREFIXreport.json and, to look at in a browser, PREFIXreport.html. Each is written
  completely or not at all, after all work. A volume of one slice is registered in its plane.
)";

inline constexpr const char* kMergeExamples = R"(Examples:
  similis compare --pairs pairs.csv --shard 1/2 -m ssim -o part1.jsonl
  similis compare --pairs pairs.csv --shard 2/2 -m ssim -o part2.jsonl
  similis merge part1.jsonl part2.jsonl --pairs pairs.csv -o scores.csv
)";

inline constexpr const char* kReportExamples = R"(Examples:
  similis compare original.y4m encoded.mkv --report encoded.html
  similis compare originals/ compressed/ -o scores.json
  similis report scores.json -o scores.html
)";

inline constexpr const char* kBenchExamples = R"(Examples:
  similis bench
  similis bench -m ssim -m ms-ssim --size 3840x2160 --threads 4
  similis bench -m lncc=window_size=5 -m mi --size 192x192x160
  similis bench --device cuda --seconds 3 --format json -o speed.json
)";

inline constexpr const char* kBenchTimes = R"(Times:
  A metric runs once to warm up, then repeatedly for the given seconds; its time is the median of
  these calls, and the rates follow from it. A call takes two pictures from memory and ends when the
  score is there; reading and decoding files is not included. The pictures are noise: 8-bit RGB, or
  luma for metrics of video; volumes are float32. With --device cuda they are on the GPU before the
  call, except for ssimulacra2, which copies them there in each call.
)";

}  // namespace similis::cli
