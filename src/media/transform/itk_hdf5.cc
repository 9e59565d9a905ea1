// SPDX-License-Identifier: Apache-2.0
// Reads /TransformGroup/N/{TransformType, TransformFixedParameters, TransformParameters} with
// libhdf5, from memory. A file of this format can name other files, plug-ins and sizes that it does
// not have; each of these is looked for and refused before the library follows it. Version 1.10.8
// loops for ever on some damaged files (found by the fuzz target), so it runs in a process of its
// own, with a limit of time.
// Source of the layout: the class documentation of ITK 5 (itk::HDF5TransformIO).
#include "src/media/transform/itk_hdf5.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "src/media/io/isolated.h"
#include "src/media/transform/hdf5_api.h"

namespace similis::media {
namespace {

constexpr const char* kNameInMemory = "/dev/null/of similis";  // the library wants one of no file
constexpr const char* kGroup = "TransformGroup";
constexpr unsigned kReadOnly = 0;  // H5F_ACC_RDONLY, which calls the library
constexpr int kMaxTransforms = 100;
constexpr std::uint64_t kMostPerByte = 1032;      // that deflate unpacks
constexpr std::size_t kLongestType = 1000;        // of a type's name
constexpr std::size_t kMemoryStep = 1 << 16;      // by which the file in memory would grow
constexpr std::size_t kLeastSeconds = 2;          // of a processor
constexpr std::size_t kBytesPerSecond = 1 << 20;  // deflate gives a hundred times as many
constexpr std::size_t kSmallDatasetBytes = 4096;  // which may be anything

// An object of the library, closed in the end.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;

  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

[[noreturn]] void refuse_layout(const File& file, const std::string& path) {
  refuse(file, "its {} is not as ITK writes it, or it is damaged", one_line(path));
}

// True if the group has it; a link to another place or file is refused.
bool has(const File& file, hid_t group, const std::string& name) {
  if (hdf5().H5Lexists(group, name.c_str(), H5P_DEFAULT) <= 0) return false;
  H5L_info_t info;
  if (hdf5().H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT) < 0 ||
      info.type != H5L_TYPE_HARD) {
    refuse_layout(file, name);
  }
  return true;
}

// Its numbers are in this file, stored as ITK stores them.
void require_plain_storage(const File& file, hid_t dataset, const std::string& name) {
  const Handle plist(hdf5().H5Dget_create_plist(dataset), hdf5().H5Pclose);
  if (!plist || hdf5().H5Pget_external_count(plist) != 0) refuse_layout(file, name);
  const H5D_layout_t layout = hdf5().H5Pget_layout(plist);
  if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) {
    refuse_layout(file, name);
  }
  const std::uint64_t most_bytes = file.bytes.size() * kMostPerByte;
  if (layout == H5D_CHUNKED) {
    const Handle type(hdf5().H5Dget_type(dataset), hdf5().H5Tclose);
    hsize_t chunk = 0;
    if (!type || hdf5().H5Pget_chunk(plist, 1, &chunk) != 1 ||
        chunk > most_bytes / hdf5().H5Tget_size(type)) {
      refuse_layout(file, name);
    }
  }
  const int filters = hdf5().H5Pget_nfilters(plist);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = hdf5().H5Pget_filter2(
        plist, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      refuse_layout(file, name);
    }
  }
}

// The number of values of a dataset that is one row.
std::uint64_t length_of(const File& file, hid_t dataset, const std::string& name) {
  const Handle space(hdf5().H5Dget_space(dataset), hdf5().H5Sclose);
  if (!space) refuse_layout(file, name);
  if (hdf5().H5Sget_simple_extent_type(space) == H5S_NULL) return 0;
  if (hdf5().H5Sget_simple_extent_ndims(space) != 1) refuse_layout(file, name);
  hsize_t length = 0;
  hdf5().H5Sget_simple_extent_dims(space, &length, nullptr);
  return length;
}

// Values of so many bytes that the file can hold.
void require_held(
    const File& file, hid_t dataset, std::uint64_t count, std::size_t bytes, const char* name) {
  const std::uint64_t stored =
      std::min<std::uint64_t>(hdf5().H5Dget_storage_size(dataset), file.bytes.size());
  if (bytes == 0 || count > (stored * kMostPerByte + kSmallDatasetBytes) / bytes) {
    refuse(file, "it is cut off: its {} promises {} numbers", name, count);
  }
}

std::vector<double> read_numbers(const File& file, hid_t group, const char* name) {
  const Handle dataset(hdf5().H5Dopen2(group, name, H5P_DEFAULT), hdf5().H5Dclose);
  if (!dataset) refuse_layout(file, name);
  require_plain_storage(file, dataset, name);
  const Handle type(hdf5().H5Dget_type(dataset), hdf5().H5Tclose);
  if (!type ||
      (hdf5().H5Tget_class(type) != H5T_FLOAT && hdf5().H5Tget_class(type) != H5T_INTEGER)) {
    refuse_layout(file, name);
  }
  const std::uint64_t count = length_of(file, dataset, name);
  require_held(file, dataset, count, hdf5().H5Tget_size(type), name);
  std::vector<double> numbers(count);
  if (count > 0 && hdf5().H5Dread(dataset, hdf5().native_double, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       numbers.data()) < 0) {
    refuse_layout(file, name);
  }
  return numbers;
}

std::string read_word(const File& file, hid_t group, const char* name) {
  const Handle dataset(hdf5().H5Dopen2(group, name, H5P_DEFAULT), hdf5().H5Dclose);
  if (!dataset) refuse_layout(file, name);
  require_plain_storage(file, dataset, name);
  const Handle type(hdf5().H5Dget_type(dataset), hdf5().H5Tclose);
  if (!type || hdf5().H5Tget_class(type) != H5T_STRING || length_of(file, dataset, name) != 1) {
    refuse_layout(file, name);
  }
  if (hdf5().H5Tis_variable_str(type) > 0) {
    const Handle memory(hdf5().H5Tcopy(hdf5().c_string), hdf5().H5Tclose);
    hdf5().H5Tset_size(memory, H5T_VARIABLE);
    hdf5().H5Tset_cset(memory, hdf5().H5Tget_cset(type));
    char* text = nullptr;
    if (hdf5().H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) < 0 ||
        text == nullptr) {
      refuse_layout(file, name);
    }
    const std::string word(text, strnlen(text, kLongestType));
    hdf5().H5free_memory(text);
    return word;
  }
  const std::size_t bytes = hdf5().H5Tget_size(type);
  if (bytes == 0 || bytes > kLongestType) refuse_layout(file, name);
  std::vector<char> text(bytes);
  if (hdf5().H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
    refuse_layout(file, name);
  }
  return {text.data(), strnlen(text.data(), bytes)};
}

// Files of ITK before 4.13 misspell the names of numbers.
std::vector<double> read_either(
    const File& file, hid_t group, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (has(file, group, name)) return read_numbers(file, group, name);
  }
  return {};
}

std::vector<ItkTransform> read_all(const File& file, hid_t opened) {
  if (!has(file, opened, kGroup)) {
    refuse(file, "it is HDF5 without a {}, so no transform of ITK's", kGroup);
  }
  const Handle all(hdf5().H5Gopen2(opened, kGroup, H5P_DEFAULT), hdf5().H5Gclose);
  if (!all) refuse_layout(file, kGroup);
  std::vector<ItkTransform> transforms;
  for (int number = 0; has(file, all, std::to_string(number)); ++number) {
    if (number > kMaxTransforms) {
      refuse(file, "it has more than {} transforms in one composite", kMaxTransforms);
    }
    const std::string name = std::to_string(number);
    const Handle group(hdf5().H5Gopen2(all, name.c_str(), H5P_DEFAULT), hdf5().H5Gclose);
    if (!group || !has(file, group, "TransformType")) refuse_layout(file, kGroup);
    transforms.push_back({.type = read_word(file, group, "TransformType"),
        .parameters = read_either(file, group, {"TransformParameters", "TranformParameters"}),
        .fixed =
            read_either(file, group, {"TransformFixedParameters", "TranformFixedParameters"})});
  }
  return transforms;
}

std::vector<ItkTransform> read_here(const File& file) {
  hdf5().H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print its errors
  hdf5().H5PLset_loading_state(0);                     // no plug-ins
  const Handle access(hdf5().H5Pcreate(hdf5().file_access), hdf5().H5Pclose);
  hdf5().H5Pset_fapl_core(access, kMemoryStep, false);
  // The library copies the bytes, and does not write to them.
  hdf5().H5Pset_file_image(access, const_cast<std::uint8_t*>(file.bytes.data()), file.bytes.size());
  const Handle opened(hdf5().H5Fopen(kNameInMemory, kReadOnly, access), hdf5().H5Fclose);
  if (!opened) refuse(file, "it is HDF5 that is cut off or damaged");
  return read_all(file, opened);
}

// ---- from the copy of this process that reads ----

template <class T> void append(const T* values, std::size_t count, std::vector<std::uint8_t>& to) {
  const std::uint64_t size = count;
  const auto* head = reinterpret_cast<const std::uint8_t*>(&size);
  const auto* body = reinterpret_cast<const std::uint8_t*>(values);
  to.insert(to.end(), head, head + sizeof size);
  to.insert(to.end(), body, body + count * sizeof(T));
}

template <class Values> Values take(Bytes& from) {
  std::uint64_t count = 0;
  std::memcpy(&count, from.data(), sizeof count);
  Values values(count, {});
  const std::size_t bytes = count * sizeof(typename Values::value_type);
  if (bytes > 0) std::memcpy(values.data(), from.data() + sizeof count, bytes);
  from = from.subspan(sizeof count + bytes);
  return values;
}

}  // namespace

std::vector<ItkTransform> read_itk_hdf5(const File& file) {
  if (!hdf5().problem.empty()) {  // loaded here, before there is a copy of this process
    refuse(file, "it is HDF5, but {}; install libhdf5", hdf5().problem);
  }
  const auto seconds = static_cast<int>(kLeastSeconds + file.bytes.size() / kBytesPerSecond);
  const auto message = run_isolated(
      [&file] {
        std::vector<std::uint8_t> bytes;
        for (const ItkTransform& transform : read_here(file)) {
          append(transform.type.data(), transform.type.size(), bytes);
          append(transform.parameters.data(), transform.parameters.size(), bytes);
          append(transform.fixed.data(), transform.fixed.size(), bytes);
        }
        return bytes;
      },
      seconds);
  if (!message) refuse(file, "it is HDF5 that is cut off or damaged");
  std::vector<ItkTransform> transforms;
  for (Bytes rest = *message; !rest.empty();) {
    ItkTransform& transform = transforms.emplace_back();
    transform.type = take<std::string>(rest);
    transform.parameters = take<std::vector<double>>(rest);
    transform.fixed = take<std::vector<double>>(rest);
  }
  return transforms;
}

std::string hdf5_library() {
  if (!hdf5().problem.empty()) return hdf5().problem;
  unsigned major = 0, minor = 0, release = 0;
  hdf5().H5get_libversion(&major, &minor, &release);
  return fmt::format("HDF5 {}.{}.{}", major, minor, release);
}

}  // namespace similis::media
