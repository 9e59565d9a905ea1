// SPDX-License-Identifier: Apache-2.0
// Volumes whose header is text: MetaImage (.mha, .mhd with its samples in another file), which ITK
// writes, and NRRD (.nrrd, .nhdr).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/media/volume/samples.h"
#include "src/media/volume/volume.h"

namespace similis::media {

/// True if a file begins as one of them.
bool is_text_volume(Bytes start);

/// path: from which the name of another file with the samples is taken; empty: that is refused.
/// Throws InvalidArgument as read_volume() does.
Volume read_text_volume(const File& file, const std::string& path);

/// The contents of a header.
struct TextHeader {
  SampleLayout samples;
  Grid grid;
  std::int64_t frames = 1;
  std::int64_t components = 1;  ///< of each voxel, beside each other in the file
  double frame_seconds = 0;
  bool is_compressed = false;  ///< by zlib, with its own or gzip's header
  std::string data_file;       ///< beside the header's; empty: the samples follow it
  std::size_t begin = 0;       ///< of the samples in their file, in bytes
  bool is_at_end = false;      ///< the samples are the file's last bytes, whatever `begin` is
};

TextHeader parse_metaimage(const File& file);
TextHeader parse_nrrd(const File& file);

/// The numbers of a field, separated by blanks, commas and parentheses. Refuses anything else.
std::vector<double> numbers_of(const File& file, std::string_view name, std::string_view text);

/// As many sides as there are axes of space, 2 or 3, from 1 on. Refuses others.
void set_sides(const File& file, const std::vector<double>& sides, Grid& grid);

/// Throws InvalidArgument if the voxels do not lie in space.
void require_placed(const File& file, const Grid& grid);

/// `text` without blanks at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace similis::media
