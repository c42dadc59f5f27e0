// A convolution by Winograd's algorithm (schedule/winograd.h).
#include "hone/space/rules/winograd.h"

#include "hone/space/rules/cpu/bilinear.h"

namespace hone::space {

Fit add_winograd(SketchBuilder& builder, const Task& task, int64_t outputs) {
  const std::string& conv = task.reduction;
  const std::vector<schedule::WinogradDim> dims = winograd_tiles(builder.state, conv, outputs);
  Bilinear algorithm{.step = schedule::Winograd{conv, outputs}, .point_axes = dims.size()};
  for (const schedule::WinogradDim& dim : dims) {
    algorithm.tiled.push_back({dim.axis, outputs});
    algorithm.points *= dim.points(outputs);
  }
  return dims.empty() ? Fit::kNone : add_bilinear(builder, task, algorithm);
}

}  // namespace hone::space
