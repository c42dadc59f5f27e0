#include "hone/space/rules/winograd.h"

#include <algorithm>

namespace hone::space {
namespace {

// With a stride six results need 13 products, hardly fewer for each than four do, and four of 9
// fill an image worse than three of 7.
bool is_worth_trying(const schedule::WinogradDim& dim, int64_t outputs) {
  return dim.allows(outputs) && dim.extent >= outputs &&
         (dim.stride == 1 ? outputs != 3 : outputs <= 4);
}

}  // namespace

std::vector<schedule::WinogradDim> winograd_tiles(const schedule::State& state,
                                                  const std::string& conv, int64_t outputs) {
  std::vector<schedule::WinogradDim> dims = schedule::winograd_dims(state, state.find_stage(conv));
  const bool all = std::all_of(dims.begin(), dims.end(), [&](const schedule::WinogradDim& dim) {
    return is_worth_trying(dim, outputs);
  });
  return all ? dims : std::vector<schedule::WinogradDim>();
}

}  // namespace hone::space
