// A matrix product by Strassen's algorithm (schedule/strassen.h).
#include "hone/schedule/strassen.h"

#include "hone/space/rules/cpu/bilinear.h"

namespace hone::space {
namespace {

// An eighth of the products of a pair of rows and a vector of columns must be worth seven stores
// and loads of results and their sums, and as much for data; and there must be rows enough for 7/4
// of the weights.
constexpr int64_t kLeastSum = 128, kLeastColumns = 128, kLeastRows = 32;

int64_t points(const std::vector<compute::Axis>& axes) {
  int64_t product = 1;
  for (const compute::Axis& axis : axes) product *= axis.extent;
  return product;
}

// The innermost rows of which a pair with one row is none or one of many; "" if there are none.
std::string paired(const std::vector<compute::Axis>& rows) {
  constexpr int64_t kMany = 15;
  for (size_t i = rows.size(); i-- > 0;) {
    if (rows[i].extent % 2 == 0 || rows[i].extent >= kMany) return rows[i].var->name;
  }
  return "";
}

}  // namespace

Fit add_strassen(SketchBuilder& builder, const Task& task) {
  const std::string& product = task.reduction;
  const int index = builder.state.find_stage(product);
  const int64_t lanes = builder.cpu().lanes(4);
  const std::string rows = paired(schedule::strassen_rows(builder.state, index, lanes));
  if (rows.empty()) return Fit::kNone;
  const compute::Stage& stage = builder.state.stages[static_cast<size_t>(index)].info->stage;
  const int64_t columns = stage.axes.back().extent;
  if (points(stage.reduce) < kLeastSum || columns < kLeastColumns ||
      points(stage.axes) < kLeastRows * columns)
    return Fit::kNone;
  return add_bilinear(builder, task,
                      {.step = schedule::Strassen{product, rows, lanes},
                       .tiled = {{rows, 2}},
                       .points = 7,
                       .channel_places = 2});
}

}  // namespace hone::space
