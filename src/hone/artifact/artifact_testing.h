// artifact/artifact_testing.h - a small model of hand-written kernels, for tests of artifacts. It
// computes y[i] = w0 x[i-1] + w1 x[i] + w2 x[i+1] with zeros outside, from a padded copy in the
// arena, and the positive values of x, whose number depends on the data.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hone/artifact/artifact.h"
#include "hone/base/rng.h"

namespace hone::artifact::testing {

inline constexpr int64_t kLength = 1000;
inline constexpr int64_t kTile = 64;
inline constexpr int64_t kNumTiles = (kLength + kTile - 1) / kTile;
inline constexpr float kWeights[3] = {0.5F, 2.0F, -1.0F};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline ArtifactSpec filter_spec(const std::string& kernels_object) {
  constexpr int64_t kCount = 0;    // offset in the arena of the number of positive values
  constexpr int64_t kPadded = 64;  // offset in the arena of x with its border
  constexpr int64_t kPaddedBytes = (kLength + 2) * 4;
  ArtifactSpec spec;
  spec.name = "filter";
  spec.inputs = {{"x", DType::kF32, {1, kLength}}};
  spec.outputs = {{"y", DType::kF32, {1, kLength}}, {"positive", DType::kF32, {kLength}, kCount}};
  spec.arena_bytes = kPadded + kPaddedBytes;
  spec.scratch_bytes = kTile * 4;
  spec.zeroed = {{kPadded, 4}, {kPadded + kPaddedBytes - 4, 4}};
  spec.weights = {{kWeights, sizeof kWeights}};
  spec.executables = {{.code = kernels_object}};
  spec.kernel_symbols = {"test_pad", "test_filter", "test_positive"};
  const ArtifactArgument x = {ArgumentKind::kInput, 0, 0};
  const ArtifactArgument padded = {ArgumentKind::kArena, 0, kPadded};
  const ArtifactArgument weights = {ArgumentKind::kWeight, 0, 0};
  spec.steps = {
      {"pad", 0, kNumTiles, 0, 0, {x, padded}},
      {"filter",
       1,
       kNumTiles,
       0,
       5.0 * kLength,
       {padded, weights, {ArgumentKind::kOutput, 0, 0}},
       "conv1d",
       8.0 * kLength,
       3.0 * kLength},
      {"positive",
       2,
       1,
       0,
       0,
       {x, {ArgumentKind::kOutput, 1, 0}, {ArgumentKind::kArena, 0, kCount}}},
  };
  return spec;
}

inline std::vector<float> filter_input(float seed) {
  std::vector<float> x(kLength);
  for (int64_t i = 0; i < kLength; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 101) - 50.0F + seed;
  return x;
}

inline std::vector<float> filter_output(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float left = i == 0 ? 0 : x[i - 1];
    const float right = i + 1 == x.size() ? 0 : x[i + 1];
    y[i] = kWeights[0] * left + kWeights[1] * x[i] + kWeights[2] * right;
  }
  return y;
}

// Damages the bytes in 20,000 ways. Returns how many of them the check refuses.
inline int count_refused_damages(const std::string& good, uint64_t seed,
                                 const char* (*check)(const void*, uint64_t)) {
  Rng rng(seed);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint64_t> words(good.size() / 8);
    std::memcpy(words.data(), good.data(), good.size());
    const int changes = 1 + static_cast<int>(rng.below(3));
    for (int i = 0; i < changes; ++i) {
      const uint64_t choices[] = {rng.next(), rng.next() % 512, ~uint64_t{0},
                                  uint64_t{1} << rng.below(64)};
      words[rng.next() % words.size()] = choices[rng.below(4)];
    }
    if (check(words.data(), good.size()) != nullptr) ++refused;
  }
  return refused;
}

// A folder for one test, which is removed at the test's end.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "hone-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] int num_files() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      count += entry.exists() ? 1 : 0;
    return count;
  }

 private:
  std::string path_;
};

}  // namespace hone::artifact::testing
