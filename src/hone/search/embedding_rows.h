// search/embedding_rows.h - schedules as rows of numbers for a Gaussian process
// (decision_process.h): not their decisions, but where the cost model's net sees them
// (cost/embedder.h). Schedules of different sketches can be near each other there.
#pragma once

#include <optional>

#include "hone/cost/embedder.h"
#include "hone/search/searcher.h"

namespace hone::search {

class EmbeddingRows {
 public:
  // Finds by samples which numbers differ, and how much. None if the model does not embed schedules
  // of the task. Illegal samples do not count.
  [[nodiscard]] static std::optional<EmbeddingRows> make(const SearchTask& task,
                                                         std::span<const space::Point> samples);
  // Returns the rows of legal points. Over the samples each number has the mean and the variance of
  // a random decision, which the process counts on. None if the model cannot embed one.
  [[nodiscard]] std::optional<std::vector<std::vector<float>>> rows(
      std::span<const space::Point> points) const;

 private:
  explicit EmbeddingRows(const SearchTask& task) : task_(task) {}
  // A number of the embedding that differs between samples.
  struct Number {
    size_t place;
    double mean, deviation;
  };

  SearchTask task_;
  std::vector<Number> numbers_;
};

// Fills the first place of a row, where rows of decisions have their sketch.
inline constexpr float kEmbedded = -1;

}  // namespace hone::search
