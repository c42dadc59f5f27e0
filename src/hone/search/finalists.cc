#include "hone/search/finalists.h"

#include <algorithm>
#include <utility>

namespace hone::search {
namespace {

constexpr size_t kFinalists = 3;
constexpr int64_t kFewerWeights = 2;  // times fewer

int64_t num_tiles(const Finalist& finalist) {
  return finalist.candidate.job.executable.entries.back().num_tiles;
}

int64_t weight_bytes(const Finalist& finalist) {
  int64_t packed = 0, given = 0;
  for (const measure::Argument& argument : finalist.candidate.job.arguments) {
    if (argument.role == ir::Role::kPacked) packed += argument.bytes;
    if (argument.role == ir::Role::kConstant) given += argument.bytes;
  }
  return packed > 0 ? packed : given;
}

}  // namespace

void Finalists::insert(const Candidate& candidate, double seconds) {
  const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), seconds,
                                      [](double t, const Finalist& f) { return t < f.seconds; });
  finalists_.insert(place, {candidate, seconds});
  size_t kept = 0;
  bool split = false, fewer = false;
  for (size_t i = 0; i < finalists_.size(); ++i) {
    const bool first_split = !split && has_other_split(finalists_[i]);
    const bool first_fewer = !fewer && has_fewer_weights(finalists_[i]);
    split = split || first_split;
    fewer = fewer || first_fewer;
    if (i >= kFinalists && !first_split && !first_fewer) continue;
    if (i > kept) finalists_[kept] = std::move(finalists_[i]);
    ++kept;
  }
  finalists_.erase(finalists_.begin() + static_cast<std::ptrdiff_t>(kept), finalists_.end());
}

std::optional<Finalist> Finalists::remove(uint64_t job_id) {
  const auto found = std::find_if(finalists_.begin(), finalists_.end(),
                                  [&](const Finalist& f) { return f.candidate.job.id == job_id; });
  if (found == finalists_.end() || finalists_.size() < 2) return std::nullopt;
  Finalist removed = std::move(*found);
  finalists_.erase(found);
  return removed;
}

bool Finalists::has_other_split(const Finalist& finalist) const {
  return threads_ > 1 && num_tiles(finalist) != num_tiles(finalists_.front());
}

bool Finalists::has_fewer_weights(const Finalist& finalist) const {
  return weights_ == measure::Weights::kShared &&
         kFewerWeights * weight_bytes(finalist) <= weight_bytes(finalists_.front());
}

}  // namespace hone::search
