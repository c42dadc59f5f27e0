// A convolution by Winograd's algorithm (schedule/winograd.h).
#include <algorithm>

#include "hone/schedule/winograd.h"
#include "hone/space/bilinear.h"

namespace hone::space {
namespace {

// With a stride six results need 13 products, hardly fewer for each than four do, and four of 9
// fill an image worse than three of 7.
bool is_worth_trying(const schedule::WinogradDim& dim, int64_t outputs) {
  return dim.allows(outputs) && dim.extent >= outputs &&
         (dim.stride == 1 ? outputs != 3 : outputs <= 4);
}

}  // namespace

bool add_winograd(SketchBuilder& builder, const std::string& epilogue, const std::string& conv,
                  int64_t outputs) {
  const std::vector<schedule::WinogradDim> dims =
      schedule::winograd_dims(builder.state, builder.state.find_stage(conv));
  Bilinear algorithm{.step = schedule::Winograd{conv, outputs}, .point_axes = dims.size()};
  for (const schedule::WinogradDim& dim : dims) {
    if (!is_worth_trying(dim, outputs)) return false;
    algorithm.tiled.push_back({dim.axis, outputs});
    algorithm.points *= dim.points(outputs);
  }
  return !dims.empty() && add_bilinear(builder, epilogue, conv, algorithm);
}

}  // namespace hone::space
