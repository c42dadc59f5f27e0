#include "hone/schedule/needed_flops.h"

#include <algorithm>
#include <functional>
#include <set>

#include "hone/schedule/bilinear.h"

namespace hone::schedule {
namespace {

using compute::AffineRow;

// So many points are looked at one by one; of larger axes all is counted.
constexpr int64_t kMostPoints = 1 << 22;

// The part of some axes of a stage, or of dimensions of a buffer, that is needed.
struct Need {
  double share = 1;
  std::set<int> of;
};

std::set<int> axes_of(const AffineRow& row) {
  std::set<int> axes;
  for (size_t a = 0; a < row.coef.size(); ++a) {
    if (row.coef[a] != 0) axes.insert(static_cast<int>(a));
  }
  return axes;
}

// The mean over these axes of what is made of a row's value; 1 if they are too large.
double mean(const AffineRow& row, const StageInfo& info,
            const std::function<double(int64_t)>& of_value) {
  double points = 1;
  std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient, extent
  for (const int a : axes_of(row)) {
    const int64_t extent = info.axes[static_cast<size_t>(a)].extent;
    terms.emplace_back(row.coef[static_cast<size_t>(a)], extent);
    points *= static_cast<double>(extent);
  }
  if (points > kMostPoints) return 1;
  double total = 0;
  const auto add = [&](const auto& self, size_t t, int64_t value) -> void {
    if (t == terms.size()) {
      total += of_value(value);
      return;
    }
    for (int64_t i = 0; i < terms[t].second; ++i) self(self, t + 1, value + terms[t].first * i);
  };
  add(add, 0, row.constant);
  return total / points;
}

// Returns the share of a sum that is left without products with zeros around its data.
double share_beside_zeros(const State& state, const StageInfo& info) {
  const std::optional<Factors> factors = product_of(state, info);
  if (!factors || factors->data->op != ir::Op::kLoad) return 1;
  const ir::Param* param = state.find_param(factors->data->buffer);
  const ir::Param* weight = state.find_param(factors->weight_access.buffer);
  if (!param || param->zeros.empty() || !weight) return 1;
  const std::vector<int64_t>&shape = param->buffer->shape, &zeros = param->zeros;
  double share = 1;
  std::set<int> seen;  // axes: dimensions that share one are not independent
  for (size_t d = 0; d < shape.size(); ++d) {
    const AffineRow& row = factors->data_access.index[d];
    const std::set<int> axes = axes_of(row);
    const bool fresh =
        std::none_of(axes.begin(), axes.end(), [&](int a) { return seen.count(a) > 0; });
    if (!fresh) continue;
    const int64_t first = zeros[d], end = shape[d] - zeros[shape.size() + d];
    share *= mean(row, info, [&](int64_t i) { return first <= i && i < end ? 1.0 : 0.0; });
    seen.insert(axes.begin(), axes.end());
  }
  return share;
}

// The terms of a sum that matter, by the axes that decide and the sum's own.
std::optional<Need> terms_that_matter(const StageInfo& info) {
  if (!info.stage.until || info.stage.reduce.size() != 1) return std::nullopt;
  const std::optional<AffineRow> row =
      compute::affine_row(info.stage.until, compute::stage_vars(info.stage));
  if (!row) return std::nullopt;
  const int64_t all = info.stage.reduce[0].extent;
  Need need{mean(*row, info,
                 [&](int64_t end) {
                   return static_cast<double>(std::clamp<int64_t>(end, 0, all)) /
                          static_cast<double>(all);
                 }),
            axes_of(*row)};
  need.of.insert(info.num_spatial());
  return need;
}

// The dimensions that move with these axes, each with one of them and nothing else; nothing if an
// axis has none.
std::optional<std::set<int>> dims_of(const std::vector<AffineRow>& rows,
                                     const std::set<int>& axes) {
  std::set<int> dims;
  for (const int a : axes) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const AffineRow& row) {
      return axes_of(row) == std::set<int>{a};
    });
    if (found == rows.end()) return std::nullopt;
    dims.insert(static_cast<int>(found - rows.begin()));
  }
  return dims;
}

// Returns the part of a stage that must be computed: what its readers need, or its own terms.
// `needs` has the stages behind it.
Need need_of(const State& state, int s, const std::vector<Need>& needs) {
  const StageInfo& info = *state.stages[static_cast<size_t>(s)].info;
  if (const std::optional<Need> own = terms_that_matter(info)) return *own;
  if (info.stage.outputs.size() != 1 || info.stage.is_extern()) return {};
  const ir::BufferPtr& buffer = info.stage.outputs[0].buffer;
  if (state.is_param(buffer)) return {};
  Need most{0, {}};
  for (const int r : state.readers(buffer)) {
    if (r == s) continue;
    const StageInfo& reader = *state.stages[static_cast<size_t>(r)].info;
    const Need& need = needs[static_cast<size_t>(r)];
    for (const compute::Access& read : reader.reads) {
      if (read.buffer != buffer) continue;
      const std::optional<std::set<int>> dims = dims_of(read.index, need.of);
      if (!dims || need.of.empty() || (!most.of.empty() && most.of != *dims)) return {};
      most = {std::max(most.share, need.share), *dims};
    }
  }
  if (most.of.empty()) return {};
  std::set<int> axes;
  for (const int d : most.of) {
    const std::set<int> written = axes_of(info.writes[0][static_cast<size_t>(d)]);
    if (written.size() != 1) return {};
    axes.insert(*written.begin());
  }
  return {most.share, std::move(axes)};
}

}  // namespace

double needed_flops(const State& state) {
  std::vector<Need> needs(state.stages.size());
  double total = 0;
  for (int s = static_cast<int>(state.stages.size()) - 1; s >= 0; --s) {
    const StageInfo& info = *state.stages[static_cast<size_t>(s)].info;
    Need& need = needs[static_cast<size_t>(s)];
    need = need_of(state, s, needs);
    total += compute::flops(info.stage) * need.share * share_beside_zeros(state, info);
  }
  return total;
}

}  // namespace hone::schedule
