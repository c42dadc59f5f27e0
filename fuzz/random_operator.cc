#include "random_operator.h"

#include <algorithm>

namespace hone::fuzz {
namespace {

using graph::TestModel;

// Small extents around whole vectors.
Shape shape_of(Rng& rng, int64_t least_rank, int64_t most_rank) {
  Shape shape(static_cast<size_t>(rng.between(least_rank, most_rank)));
  for (int64_t& extent : shape) extent = rng.choice<int64_t>({1, 2, 3, 5, 7, 8, 13, 17, 31});
  return shape;
}

int64_t axis_of(const Shape& shape, Rng& rng) {
  return rng.below(static_cast<int64_t>(shape.size()));
}

void selection(TestModel& model, Rng& rng) {
  const Shape shape = shape_of(rng, 1, 3);
  const int64_t axis = axis_of(shape, rng), extent = shape[static_cast<size_t>(axis)];
  model.input("x", shape);
  if (rng.chance(0.4)) {
    model.node(rng.chance(0.5) ? "ArgMax" : "ArgMin", {"x"}, {"y"},
               {{"axis", axis}, {"select_last_index", rng.below(2)}});
    model.output("y");
    return;
  }
  model.constant("k", graph::ints({rng.between(1, extent)}));
  model.node("TopK", {"x", "k"}, {"y", "places"}, {{"axis", axis}, {"largest", rng.below(2)}});
  model.output("y").output("places");
}

// Indices are data of any value; those out of range are those of the nearest element.
void indices(TestModel& model, Rng& rng) {
  const Shape shape = shape_of(rng, 1, 3);
  const int64_t axis = axis_of(shape, rng);
  model.input("x", shape).output("y");
  switch (rng.below(4)) {
    case 0:
      model.input("i", shape_of(rng, 1, 2), DType::kI64)
          .node("Gather", {"x", "i"}, {"y"}, {{"axis", axis}});
      break;
    case 1: {
      Shape some = shape;
      for (int64_t& extent : some) extent = rng.between(1, extent);
      model.input("i", some, DType::kI64)
          .node("GatherElements", {"x", "i"}, {"y"}, {{"axis", axis}});
      break;
    }
    case 2: {
      const int64_t depth = rng.between(1, static_cast<int64_t>(shape.size()));
      model.input("i", {rng.between(1, 7), depth}, DType::kI64).node("GatherND", {"x", "i"}, {"y"});
      break;
    }
    default: {
      Shape some = shape;
      for (int64_t& extent : some) extent = rng.between(1, extent);
      model.input("i", some, DType::kI64)
          .input("u", some)
          .node("ScatterElements", {"x", "i", "u"}, {"y"},
                {{"axis", axis}, {"reduction", std::string("add")}});
    }
  }
}

void scan(TestModel& model, Rng& rng) {
  const Shape shape = shape_of(rng, 1, 3);
  model.input("x", shape)
      .constant("axis", graph::ints({axis_of(shape, rng)}))
      .node("CumSum", {"x", "axis"}, {"y"},
            {{"exclusive", rng.below(2)}, {"reverse", rng.below(2)}})
      .output("y");
}

void resize(TestModel& model, Rng& rng) {
  const Shape shape = shape_of(rng, 4, 4);
  static const std::vector<std::string> kModes = {"nearest", "linear", "cubic"};
  static const std::vector<std::string> kPlaces = {"half_pixel", "asymmetric", "align_corners"};
  Shape to = shape;
  to[2] = rng.between(1, 33), to[3] = rng.between(1, 33);
  model.input("x", shape)
      .constant("sizes", graph::ints(to))
      .node("Resize", {"x", "", "", "sizes"}, {"y"},
            {{"mode", rng.choice(kModes)}, {"coordinate_transformation_mode", rng.choice(kPlaces)}})
      .output("y");
}

void samples(TestModel& model, Rng& rng) {
  const int64_t channels = rng.between(1, 9), h = rng.between(1, 9), w = rng.between(1, 9);
  static const std::vector<std::string> kBorders = {"zeros", "border", "reflection"};
  model.input("x", {1, channels, h, w})
      .input("grid", {1, rng.between(1, 7), rng.between(1, 7), 2})
      .node("GridSample", {"x", "grid"}, {"y"},
            {{"mode", std::string(rng.chance(0.5) ? "bilinear" : "nearest")},
             {"padding_mode", rng.choice(kBorders)},
             {"align_corners", rng.below(2)}})
      .output("y");
}

void boxes(TestModel& model, Rng& rng) {
  const int64_t count = rng.between(1, 9);
  model.input("boxes", {1, count, 4})
      .input("scores", {1, rng.between(1, 3), count})
      .constant("most", graph::ints({rng.between(1, 5)}))
      .constant("overlap", graph::floats({1}, {0.5F}))
      .node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"y"})
      .output("y");
}

void recurrence(TestModel& model, Rng& rng) {
  const int64_t steps = rng.between(1, 4), batch = rng.between(1, 3), in = rng.between(1, 9),
                size = rng.choice<int64_t>({1, 3, 8, 17});
  model.input("x", {steps, batch, in})
      .constant("w", graph::random_tensor({1, 3 * size, in}, rng))
      .constant("r", graph::random_tensor({1, 3 * size, size}, rng))
      .node("GRU", {"x", "w", "r"}, {"y"},
            {{"hidden_size", size}, {"linear_before_reset", rng.below(2)}})
      .output("y");
}

}  // namespace

void add_random_operator(TestModel& model, Rng& rng) {
  switch (rng.below(10)) {
    case 0:
    case 1: return selection(model, rng);
    case 2:
    case 3: return indices(model, rng);
    case 4: return scan(model, rng);
    case 5:
    case 6: return resize(model, rng);
    case 7: return samples(model, rng);
    case 8: return boxes(model, rng);
    default: return recurrence(model, rng);
  }
}

}  // namespace hone::fuzz
