#include "hone/base/rng.h"

#include <cmath>
#include <numbers>

namespace hone {

double Rng::normal() {  // Box-Muller
  const double u = 1.0 - uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace hone
