// A convolution by Winograd's algorithm (schedule/winograd.h).
#include "hone/schedule/winograd.h"

#include <algorithm>

#include "hone/space/rules/cpu/bilinear.h"

namespace hone::space {
namespace {

// With a stride six results need 13 products, hardly fewer for each than four do, and four of 9
// fill an image worse than three of 7.
bool is_worth_trying(const schedule::WinogradDim& dim, int64_t outputs) {
  return dim.allows(outputs) && dim.extent >= outputs &&
         (dim.stride == 1 ? outputs != 3 : outputs <= 4);
}

}  // namespace

Fit add_winograd(SketchBuilder& builder, const Task& task, int64_t outputs) {
  const std::string& conv = task.reduction;
  const std::vector<schedule::WinogradDim> dims =
      schedule::winograd_dims(builder.state, builder.state.find_stage(conv));
  Bilinear algorithm{.step = schedule::Winograd{conv, outputs}, .point_axes = dims.size()};
  for (const schedule::WinogradDim& dim : dims) {
    if (!is_worth_trying(dim, outputs)) return Fit::kNone;
    algorithm.tiled.push_back({dim.axis, outputs});
    algorithm.points *= dim.points(outputs);
  }
  return dims.empty() ? Fit::kNone : add_bilinear(builder, task, algorithm);
}

}  // namespace hone::space
