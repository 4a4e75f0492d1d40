// IDX files, the format of MNIST and its kin (http://yann.lecun.com/exdb/mnist/): a big-endian
// magic number, one size per dimension, then one byte per element.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "harness/base/status.h"

namespace shakedown {

// Labelled images, all in memory. Immutable once loaded.
struct DataSet {
  int64_t samples = 0;
  int64_t features = 0;         // values per sample: rows * columns
  std::vector<uint8_t> pixels;  // samples * features, row by row, as they stand in the file
  std::vector<uint8_t> labels;  // samples

  // Largest values that occur, for scaling and for the width of the output; REQUIRES: samples > 0.
  uint8_t largest_pixel() const;
  uint8_t largest_label() const;
};

// The pair of a directory: the one file each whose name ends in "images-idx3-ubyte" and
// "labels-idx1-ubyte". Where there are several, those that begin with "train-" are taken.
struct IdxPair {
  std::filesystem::path images;
  std::filesystem::path labels;
};
Result<IdxPair> FindIdxPair(const std::filesystem::path& directory);

// Loads the pair of `directory`. Strict: a wrong magic number, an empty set, a file shorter or
// longer than its sizes say, and as many labels as images or an Error that names file and offset.
Result<DataSet> LoadDataSet(const std::filesystem::path& directory);

}  // namespace shakedown
