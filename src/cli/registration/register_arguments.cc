// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_arguments.h"

namespace similis::cli {
namespace {

void add_numbers(CLI::App& app, RegisterCommand& command) {
  app.add_option("--iterations", command.iterations,
         "iterations of the deformable stage, coarse to fine, as 50x40x20 (default: the preset's)")
      ->type_name("N[xN…]");
  app.add_option("--levels", command.levels,
         "factors by which images are shrunk, coarse to fine (default: 4x2x1, more for images of "
         "more than 150 voxels along an axis)")
      ->type_name("N[xN…]");
  app.add_option("--fluid", command.fluid,
         "smoothing of the gradient, in voxels of a level (default: 3, and up to 1 more for noise; "
         "4 with mi alone)")
      ->type_name("SIGMA");
  app.add_option("--elastic", command.elastic,
         "smoothing of the field, in voxels of a level (default: 0.25)")
      ->type_name("SIGMA");
  app.add_option("--step", command.step, "largest step of an iteration, in voxels (default: 0.5)")
      ->type_name("NUMBER");
  app.add_option("--min-jacobian", command.min_jacobian,
         "least determinant that the guard against folds accepts (default: 0.1)")
      ->type_name("NUMBER");
  app.add_option("--tolerance", command.tolerance,
         "a level ends when its loss falls by less in an iteration (default: 1e-5)")
      ->type_name("NUMBER");
}

}  // namespace

void add_register_arguments(CLI::App& app, RegisterCommand& command) {
  app.add_option("FIXED", command.fixed, "the volume that stays as it is")
      ->required()
      ->type_name("");
  app.add_option("MOVING", command.moving, "the volume that is laid over it")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", command.output,
         "beginning of the names of the files to write; a folder if it ends in /; required")
      ->required()
      ->type_name("PREFIX");
  app.add_option("--stages", command.stages,
         "any of translation, rigid, similarity, affine, and deformable or symmetric, in this "
         "order "
         "(default: rigid,affine,deformable)")
      ->type_name("STAGE,…");
  app.add_option("--init", command.init,
         "the map before the first stage: auto tries several, centers of the grids, moments "
         "(centres of mass), identity, or an affine map in a file (default: auto)")
      ->type_name("START");
  app.add_option("--preset", command.preset, "how many iterations to take (default: balanced)")
      ->type_name("quick|balanced|accurate");
  app.add_option("-m,--metric", command.metrics,
         "metric of the deformable stage: lncc, ncc, mi, mse or dice (of labels), with the options "
         "weight=NUMBER, window_size=N (of lncc), bins=N and sampling=SHARE (of mi); repeat for "
         "several (default: lncc and ncc)")
      ->type_name("METRIC[=OPTION=VALUE:…]")
      ->allow_extra_args(false);
  app.add_option("--linear-metric", command.linear_metric,
         "metric of all other stages: mi, ncc or mse (default: mi=bins=32)")
      ->type_name("METRIC[=OPTION=VALUE:…]");
  add_numbers(app, command);
  app.add_option("--fixed-mask", command.fixed_mask,
         "volume on the grid of FIXED; only voxels that are not 0 count")
      ->type_name("FILE");
  app.add_option("--moving-mask", command.moving_mask, "the same for MOVING")->type_name("FILE");
  app.add_option("--channel", command.channels,
         "a further channel of FIXED and of MOVING, each on the grid of its image; a metric is the "
         "mean over channels; repeat for several")
      ->type_name("FIXED MOVING")
      ->allow_extra_args(false);
  app.add_option("--fixed-labels", command.fixed_labels,
         "map of labels on the grid of FIXED; with --moving-labels the report has the Dice "
         "overlap of each label before and after")
      ->type_name("FILE");
  app.add_option("--moving-labels", command.moving_labels,
         "map of labels on the grid of MOVING; it is written as PREFIXLabels.nii.gz on the grid of "
         "FIXED")
      ->type_name("FILE");
  app.add_option("--nan", command.not_finite,
         "what to do with values that are not finite: refuse them, or mask them (default: error)")
      ->type_name("error|mask");
  app.add_option("--transform-also", command.also,
         "write FILE on the grid of FIXED too, as PREFIX and its name and Warped; with :label a "
         "map of labels; repeat for several")
      ->type_name("FILE[:label]")
      ->allow_extra_args(false);
  app.add_flag("--jacobian", command.writes_jacobian,
      "write PREFIXJacobian.nii.gz, the determinant of the warp's derivative");
  app.add_flag("--no-report", command.has_no_page, "do not write PREFIXreport.html");
  app.add_option("--seed", command.seed,
         "number that chooses the voxels which a metric with sampling=SHARE counts (default: 0)")
      ->type_name("N");
  app.add_flag("--no-compress", command.is_plain, "write .nii instead of .nii.gz");
}

}  // namespace similis::cli
