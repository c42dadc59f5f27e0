#include "hone/backend/cpu/space_code_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "hone/backend/cpu/guarded_run_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/known_zeros.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"
#include "hone/target/target.h"
#include "hone/tensor/half.h"

namespace hone::backend::cpu {
namespace {

constexpr std::array<int64_t, 10> kExtents = {1, 2, 3, 7, 13, 17, 31, 33, 97, 224};

// `extent` at `place`, the others by chance and small enough.
Extents extents_with(const Family& family, size_t place, int64_t extent, Rng& rng) {
  Extents e = {1, 1, 1, 1};
  int64_t product = extent;
  e[place] = extent;
  for (size_t p = 0; p < family.places; ++p) {
    if (p == place) continue;
    std::vector<int64_t> fitting;
    for (const int64_t x : kExtents) {
      if (product * x <= family.most) fitting.push_back(x);
    }
    e[p] = fitting.empty() ? 1 : rng.choice(fitting);
    product *= e[p];
  }
  return e;
}

// "winograd_4.0": the first sketch of this algorithm.
std::string sketch_name(const space::Space& space, int sketch) {
  int before = 0;
  for (int s = 0; s < sketch; ++s) before += space.algorithm(s) == space.algorithm(sketch) ? 1 : 0;
  return fmt::format("{}.{}", space.algorithm(sketch), before);
}

// "winograd_4.0 peel": the rest of columns in a loop of its own (mask: tested; no word: the sketch
// has no such decision); rest: so is the last tile of channels; test: whole tiles have no masks.
std::string name_of(const space::Space& space, const space::Point& point) {
  std::string name = sketch_name(space, point.sketch);
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].kind != space::DecisionKind::kTail) continue;
    const bool peels = decisions[i].options[static_cast<size_t>(point.choices[i])] == 1;
    if (decisions[i].name.ends_with(".rest")) {
      name += peels ? " rest" : "";
    } else if (decisions[i].name.ends_with(".last")) {
      name += peels ? " last" : "";
    } else if (decisions[i].name.ends_with("_tail")) {
      name += peels ? " test" : "";
    } else {
      name += peels ? " peel" : " mask";
    }
  }
  return name;
}

bool is_of(const Family& family, const space::Space& space, const space::Point& point) {
  return !family.narrow || trial::is_narrow(space.algorithm(point.sketch));
}

// The sketch, the name, and what the schedule has of the wanted steps.
std::vector<std::string> marks_of(const Family& family, const space::Space& space,
                                  const space::Point& point) {
  std::vector<std::string> marks = {sketch_name(space, point.sketch), name_of(space, point)};
  if (family.steps.empty()) return marks;
  const std::string text = schedule::to_string(space.steps(point));
  for (const std::string& part : family.steps) {
    if (text.find(part) != std::string::npos) marks.push_back(part);
  }
  return marks;
}

// Returns, among the sketches' default points and a sample, the one with the mark that occurred
// least.
space::Point rarest_point(const Family& family, const space::Space& space,
                          const std::map<std::string, int>& met, Rng& rng) {
  const auto times = [&](const space::Point& point) {
    int least = INT_MAX;
    for (const std::string& mark : marks_of(family, space, point)) {
      const auto found = met.find(mark);
      least = std::min(least, found == met.end() ? 0 : found->second);
    }
    return least;
  };
  std::vector<space::Point> points = space.default_points();
  for (int i = 0; i < 12 * space.num_sketches(); ++i) points.push_back(space.sample(rng));
  std::erase_if(points, [&](const space::Point& point) { return !is_of(family, space, point); });
  rng.shuffle(points);
  return *std::min_element(points.begin(), points.end(),
                           [&](const auto& a, const auto& b) { return times(a) < times(b); });
}

std::vector<Tensor> arguments_of(const ir::Program& program, uint64_t seed, bool special) {
  std::vector<Tensor> args = ir::random_arguments(program, seed);
  Rng rng(seed);
  for (size_t p = 0; special && p < args.size(); ++p) {
    if (program.params[p].role != ir::Role::kInput) continue;
    args[p].set(rng.below(args[p].size()), std::numeric_limits<double>::quiet_NaN());
    args[p].set(rng.below(args[p].size()), std::numeric_limits<double>::infinity());
    ir::put_known_zeros(program.params[p], args[p]);
  }
  // Constants that 16 bits can hold, so that these are as exact as 32.
  for (size_t p = 0; p < args.size(); ++p) {
    if (program.params[p].role != ir::Role::kConstant || args[p].dtype() != DType::kF32) continue;
    for (float& value : args[p].as<float>())
      value = static_cast<float>(bf16_to_double(double_to_bf16(value)));
  }
  return args;
}

// "" or what differs; `tolerance` is of the largest finite result. What the naive program leaves
// unwritten (a border) counts for nothing: NaN there.
std::string difference(const Tensor& want, const Tensor& got, double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::fabs(want.at(i)));
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    const double w = want.at(i), g = got.at(i);
    if (w == g || (std::isnan(w) && std::isnan(g))) continue;
    if (std::fabs(w - g) <= tolerance * largest) continue;
    return fmt::format("[{}] is {}, expected {} (largest {})", i, g, w, largest);
  }
  return "";
}

// "" or what is wrong with a point's machine code.
std::string check(const compute::Dag& dag, const schedule::Steps& steps,
                  const target::Target& target, double tolerance, uint64_t seed, bool special) {
  const ir::Program naive = compute::naive_program(dag);
  std::vector<Tensor> want = arguments_of(naive, seed, special);
  if (const Status ran = ir::run(naive, want); !ran.ok()) return "naive: " + ran.message();
  const Result<ir::Program> program = schedule::lower(dag, steps);
  if (!program.ok()) return "lower: " + program.status().message();
  const int64_t alignment = seed % 2 == 0 ? 4 : 64;
  const auto code = compile(*program, target.cpu(), {.argument_alignment = alignment});
  if (!code.ok()) return "compile: " + code.status().message();
  std::vector<Tensor> got = arguments_of(*program, seed, special);  // params come first, in order
  const GuardOptions options = {.alignment = alignment, .threads = some_threads(seed)};
  if (const Status ran = run_guarded(*program, *code, got, options); !ran.ok())
    return fmt::format("{} threads: {}", options.threads, ran.message());
  for (size_t p = 0; p < want.size(); ++p) {
    if (naive.params[p].role != ir::Role::kOutput) continue;
    const std::string wrong = difference(want[p], got[p], tolerance);
    if (!wrong.empty()) return naive.params[p].buffer->name + wrong;
  }
  return "";
}

// The marks that were checked on a target and how often, and the sketches of all its spaces.
struct Coverage {
  std::map<std::string, int> met;
  std::set<std::string> sketches;
};

// One point of the space of a task on a target.
void check_one(const Family& family, const Extents& extents, const target::Target& target,
               Coverage& coverage, Rng& rng) {
  const compute::Dag dag = family.make(extents);
  const auto accuracy = family.narrow ? trial::Accuracy::kFast : trial::Accuracy::kDefault;
  const Result<space::Space> space = space::Space::create(dag, target, accuracy);
  ASSERT_TRUE(space.ok()) << space.status().message();
  for (const space::Point& point : space->default_points()) {
    if (is_of(family, *space, point)) coverage.sketches.insert(sketch_name(*space, point.sketch));
  }
  const space::Point point = rarest_point(family, *space, coverage.met, rng);
  const std::string name = name_of(*space, point);
  for (const std::string& mark : marks_of(family, *space, point)) ++coverage.met[mark];
  const schedule::Steps steps = space->steps(point);
  const bool direct = name.starts_with("direct") || name.starts_with("im2col");
  const bool special = direct && family.is_sum && rng.chance(0.3);
  // Winograd's transformed weights are rounded to 8 bits of fraction, and F(4x4) makes more of it
  // (0.053 was met).
  const double narrow = name.starts_with("winograd_4") ? 1e-1 : 5e-2;
  const double tolerance = direct ? 2e-5 : family.narrow ? narrow : 1e-3;
  ASSERT_EQ(check(dag, steps, target, tolerance, rng.next(), special), "")
      << compute::describe(dag) << " on " << target.name << ", " << name << "\n"
      << schedule::to_string(steps);
}

}  // namespace

void check_family(const Family& family) {
  std::vector<target::Target> targets = runnable_targets();
  if (family.small_caches) {
    for (target::Target& target : targets) target = space::with_small_caches(target);
  }
  for (size_t t = 0; t < targets.size(); ++t) {
    const target::Target& target = targets[t];
    Coverage coverage;
    Rng rng(1);
    const auto missing = [&] {
      std::string names;
      const auto want = [&](const auto& wanted) {
        for (const std::string& name : wanted) {
          if (!coverage.met.contains(name)) names += (names.empty() ? "" : ", ") + name;
        }
      };
      want(family.sketches);
      want(family.steps);
      want(coverage.sketches);
      return names;
    };
    for (size_t place = 0; place < family.places; ++place) {
      for (size_t k = 0; k < kExtents.size(); ++k) {
        if ((place + k) % targets.size() == t)
          check_one(family, extents_with(family, place, kExtents[k], rng), target, coverage, rng);
      }
    }
    for (int more = 0; more < 300 && !missing().empty(); ++more) {
      const auto place = static_cast<size_t>(rng.below(static_cast<int64_t>(family.places)));
      const int64_t extent = kExtents[static_cast<size_t>(rng.below(kExtents.size()))];
      check_one(family, extents_with(family, place, extent, rng), target, coverage, rng);
    }
    EXPECT_EQ(missing(), "") << "not met on " << target.name;
  }
}

}  // namespace hone::backend::cpu
