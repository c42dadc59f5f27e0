#include "hone/search/embedding_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "hone/search/in_parts.h"

namespace hone::search {
namespace {

constexpr double kFarthest = 4;  // deviations from the mean, at most
constexpr double kLeastDeviation = 1e-5;

bool embed_part(const SearchTask& task, std::span<const space::Point> points,
                std::span<std::vector<float>> embeddings) {
  std::vector<space::Candidate> candidates;
  candidates.reserve(points.size());  // queries point into it
  std::vector<cost::Query> queries;
  for (const space::Point& point : points) {
    Result<space::Candidate> candidate = task.space->instantiate(point);
    if (!candidate.ok()) return false;
    candidates.push_back(std::move(candidate).value());
    queries.push_back({&candidates.back(), task.target, task.threads, task.key});
  }
  Result<cost::Embeddings> found = cost::embeddings_of(*task.model, queries);
  if (!found.ok()) return false;
  std::ranges::move(*found, embeddings.begin());
  return true;
}

std::optional<cost::Embeddings> embed(const SearchTask& task,
                                      std::span<const space::Point> points) {
  cost::Embeddings embeddings(points.size());
  std::atomic<bool> known = true;
  in_parts(task.pool, points.size(), [&](size_t begin, size_t size) {
    if (!embed_part(task, points.subspan(begin, size), std::span(embeddings).subspan(begin, size)))
      known = false;
  });
  if (!known) return std::nullopt;
  return embeddings;
}

}  // namespace

std::optional<EmbeddingRows> EmbeddingRows::make(const SearchTask& task,
                                                 std::span<const space::Point> samples) {
  std::vector<space::Point> legal;
  for (const space::Point& sample : samples) {
    if (task.space->legal(sample)) legal.push_back(sample);
  }
  const std::optional<cost::Embeddings> embeddings = embed(task, legal);
  if (!embeddings || embeddings->empty()) return std::nullopt;
  EmbeddingRows made(task);
  const auto count = static_cast<double>(embeddings->size());
  for (size_t place = 0; place < embeddings->front().size(); ++place) {
    Number number{place, 0, 0};
    for (const std::vector<float>& row : *embeddings) number.mean += row[place] / count;
    double variance = 0;
    for (const std::vector<float>& row : *embeddings)
      variance += (row[place] - number.mean) * (row[place] - number.mean) / count;
    number.deviation = std::sqrt(variance);
    if (number.deviation > kLeastDeviation * std::max(1.0, std::abs(number.mean)))
      made.numbers_.push_back(number);
  }
  return made;
}

std::optional<std::vector<std::vector<float>>> EmbeddingRows::rows(
    std::span<const space::Point> points) const {
  const std::optional<cost::Embeddings> embeddings = embed(task_, points);
  if (!embeddings) return std::nullopt;
  std::vector<std::vector<float>> rows;
  for (const std::vector<float>& embedding : *embeddings) {
    std::vector<float>& row = rows.emplace_back(1, kEmbedded);
    for (const Number& number : numbers_) {
      const double away = (embedding[number.place] - number.mean) / number.deviation;
      // A random decision has the mean 1/2 and the variance 1/12.
      row.push_back(
          static_cast<float>(0.5 + std::clamp(away, -kFarthest, kFarthest) / std::sqrt(12.0)));
    }
  }
  return rows;
}

}  // namespace hone::search
