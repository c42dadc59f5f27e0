#include "hone/graph/ops/spatial_hash.h"

#include <algorithm>
#include <bit>

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kLevels = 8;      // the last has one cell
constexpr int64_t kLevelStep = 2;   // bits from a level's cell width to the next one's
constexpr int64_t kWider = 2;       // bits from the usual width to that of the first level's cells
constexpr int64_t kMostBits = 60;   // bits of the usual width and its reciprocal
constexpr int64_t kMostNear = 256;  // cells that are looked at for one box
constexpr double kFar = 1e30;       // edges beyond count as there
constexpr double kMostCells = 1 << 20;
constexpr int64_t kMixX = 73856093, kMixY = 19349663, kMixLevel = 83492791;  // odd, as hashes go

Expr logical_not(const Expr& e) { return ir::make(ir::Op::kNot, {e}); }

// Both describe a float type: the bits of its fraction, and the value of the exponent for 1.
int64_t fraction_bits(DType type) { return type == DType::kF64 ? 52 : 23; }
int64_t exponent_of_one(DType type) { return type == DType::kF64 ? 1023 : 127; }
DType bits_type(DType type) { return type == DType::kF64 ? DType::kI64 : DType::kI32; }

ir::BufferPtr integers(const char* name, int64_t extent) {
  const ir::Scope scope = extent > kLevels ? ir::Scope::kThread : ir::Scope::kStack;
  return ir::make_buffer(name, DType::kI64, {extent}, scope);
}

}  // namespace

BoxSides box_sides(const std::string& prefix, DType type, const Shape& shape, ir::Scope scope) {
  BoxSides made;
  constexpr const char* kNames[] = {"low0", "high0", "low1", "high1", "area"};
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = ir::make_buffer(prefix + kNames[i], type, shape, scope);
  return made;
}

std::vector<Stmt> store_nowhere(const BoxSides& sides, const Expr& at) {
  constexpr double kNowhere[] = {kFar, -kFar, kFar, -kFar, 0};
  std::vector<Stmt> stores;
  for (size_t k = 0; k < sides.size(); ++k)
    stores.push_back(ir::make_store(sides[k], {at}, literal(sides[k]->dtype, kNowhere[k])));
  return stores;
}

std::vector<Stmt> copy_box(const BoxSides& to, const Expr& at, const BoxSides& from) {
  std::vector<Stmt> stores;
  for (size_t k = 0; k < to.size(); ++k)
    stores.push_back(ir::make_store(to[k], {at}, ir::load(from[k], {})));
  return stores;
}

SpatialHash::SpatialHash(DType type, int64_t most, BoxSides box)
    : type_(type),
      buckets_(std::clamp<int64_t>(
          static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most / 16))), 64, 1 << 14)),
      chunks_(4 * most / kLanes + std::min(buckets_, 4 * most)),
      box_(std::move(box)),
      sides_(box_sides("near_", type, {chunks_ * kLanes}, ir::Scope::kThread)),
      last_(integers("last", buckets_)),
      filled_(integers("filled", buckets_)),
      before_(integers("before", chunks_)),
      used_(integers("used", kLevels)),
      scale_(ir::make_buffer("scale", type, {kLevels}, ir::Scope::kStack)),
      first_x_(integers("first_x", kLevels)),
      first_y_(integers("first_y", kLevels)),
      wide_(integers("wide", kLevels)),
      high_(integers("high", kLevels)),
      list_(integers("list", kMostNear)),
      made_("made", DType::kI64),
      levels_("levels", DType::kI64),
      widths_("widths", DType::kI64),
      noted_("noted", DType::kI64),
      level_("level", DType::kI64),
      bucket_("bucket", DType::kI64),
      near_("near", DType::kI64),
      cost_("cost", DType::kI64),
      listed_("listed", DType::kI64),
      at_("at", DType::kI64),
      plainly_("plainly", DType::kBool) {}

Stmt SpatialHash::with_memory(std::vector<Stmt> body) const {
  body = {with_locals(
      {made_, levels_, widths_, noted_, level_, bucket_, near_, cost_, listed_, at_, plainly_},
      std::move(body))};
  for (const ir::BufferPtr& buffer :
       {last_, filled_, before_, used_, scale_, first_x_, first_y_, wide_, high_, list_})
    body = {ir::make_alloc(buffer, std::move(body))};
  for (const ir::BufferPtr& buffer : sides_) body = {ir::make_alloc(buffer, std::move(body))};
  return body[0];
}

// Boxes without an inner part meet none, nor do those with an edge that is not a number.
Expr SpatialHash::has_inside() const {
  return ir::logical_and(ir::less(ir::load(box_[0], {}), ir::load(box_[1], {})),
                         ir::less(ir::load(box_[2], {}), ir::load(box_[3], {})));
}

// The bits of the exponent of the larger side, whose width is less than the next power of two.
Expr SpatialHash::width_exponent() const {
  const auto side = [&](size_t low) {
    return ir::load(box_[low + 1], {}) - ir::load(box_[low], {});
  };
  const Expr bits = ir::bit_cast(bits_type(type_), ir::max(side(0), side(2)));
  return ir::make(ir::Op::kShr, {ir::cast(DType::kI64, bits), ir::constant(fraction_bits(type_))});
}

// Never falls where the edge rises.
Expr SpatialHash::cell_of(size_t side, const Expr& level) const {
  const auto clamped = [&](const Expr& e, double most) {
    return ir::min(ir::max(e, literal(type_, -most)), literal(type_, most));
  };
  const Expr scaled = clamped(ir::load(box_[side], {}), kFar) * ir::load(scale_, {level});
  return ir::cast(DType::kI64, clamped(ir::make(ir::Op::kFloor, {scaled}), kMostCells));
}

Expr SpatialHash::bucket_of(const Expr& x, const Expr& y, const Expr& level) const {
  const Expr mixed = ir::make(ir::Op::kBitXor, {x * ir::constant(kMixX), y * ir::constant(kMixY)});
  return ir::make(ir::Op::kBitAnd,
                  {ir::make(ir::Op::kBitXor, {mixed, level * ir::constant(kMixLevel)}),
                   ir::constant(buckets_ - 1)});
}

Expr SpatialHash::chunks_of(const Expr& bucket) const {
  return ir::floordiv(ir::load(filled_, {bucket}) + (kLanes - 1), kLanes);
}

Stmt SpatialHash::clear() const {
  return ir::make_block({made_.set(ir::constant(0)), levels_.set(ir::constant(0)),
                         widths_.set(ir::constant(0)), noted_.set(ir::constant(0)),
                         count_to("l", ir::constant(kLevels),
                                  [&](const Expr& l) {
                                    return std::vector{ir::make_store(used_, {l}, ir::constant(0))};
                                  }),
                         count_to("b", ir::constant(buckets_), [&](const Expr& b) {
                           return std::vector{ir::make_store(filled_, {b}, ir::constant(0)),
                                              ir::make_store(last_, {b}, ir::constant(0))};
                         })});
}

Stmt SpatialHash::note_width() const {
  const int64_t beyond = 2 * exponent_of_one(type_) + 1;  // the exponent of what is infinite
  const Expr usual = ir::logical_and(ir::less(ir::constant(0), level_.get()),
                                     ir::less(level_.get(), ir::constant(beyond)));
  return ir::make_if(has_inside(), {level_.set(width_exponent()),
                                    ir::make_if(usual, {widths_.set(widths_.get() + level_.get()),
                                                        noted_.set(noted_.get() + 1)})});
}

// The first level's cells are some times as wide as the geometric mean of the boxes' widths.
Stmt SpatialHash::choose_cells() const {
  const int64_t one = exponent_of_one(type_);
  const Expr mean = ir::make(ir::Op::kDiv, {widths_.get(), ir::max(noted_.get(), ir::constant(1))});
  const Expr cell =
      ir::min(ir::max(mean + kWider, ir::constant(one - kMostBits)), ir::constant(one + kMostBits));
  const Stmt scales = count_to("l", ir::constant(kLevels - 1), [&](const Expr& l) {
    const Expr exponent = ir::constant(2 * one) - widths_.get() - l * ir::constant(kLevelStep);
    const Expr bits = ir::make(ir::Op::kShl, {exponent, ir::constant(fraction_bits(type_))});
    return std::vector{
        ir::make_store(scale_, {l}, ir::bit_cast(type_, ir::cast(bits_type(type_), bits)))};
  });
  return ir::make_block({widths_.set(cell), scales,
                         ir::make_store(scale_, {ir::constant(kLevels - 1)}, literal(type_, 0))});
}

// Sets the cells of a level that the box covers.
std::vector<Stmt> SpatialHash::find_cells(const Expr& level) const {
  const auto range = [&](size_t low, const ir::BufferPtr& first, const ir::BufferPtr& extent) {
    return std::vector{
        ir::make_store(first, {level}, cell_of(low, level)),
        ir::make_store(extent, {level}, cell_of(low + 1, level) - ir::load(first, {level}) + 1)};
  };
  std::vector<Stmt> steps = range(0, first_y_, high_);
  for (Stmt& step : range(2, first_x_, wide_)) steps.push_back(std::move(step));
  return steps;
}

Stmt SpatialHash::for_cells(const Expr& level, const WithCell& body) const {
  return count_to("y", ir::load(high_, {level}), [&](const Expr& y) {
    return std::vector{count_to("x", ir::load(wide_, {level}), [&](const Expr& x) {
      std::vector<Stmt> steps = {bucket_.set(
          bucket_of(ir::load(first_x_, {level}) + x, ir::load(first_y_, {level}) + y, level))};
      for (Stmt& step : body(bucket_.get())) steps.push_back(std::move(step));
      return steps;
    })};
  });
}

std::vector<Stmt> SpatialHash::add_to(const Expr& bucket) const {
  const Expr place = ir::floormod(ir::load(filled_, {bucket}), kLanes);
  const Stmt clear_chunk = count_to("lane", ir::constant(kLanes), [&](const Expr& lane) {
    return store_nowhere(sides_, made_.get() * ir::constant(kLanes) + lane);
  });
  std::vector<Stmt> steps = {
      ir::make_if(ir::make(ir::Op::kEq, {place, ir::constant(0)}),
                  {clear_chunk, ir::make_store(before_, {made_.get()}, ir::load(last_, {bucket})),
                   ir::make_store(last_, {bucket}, made_.get()), made_.set(made_.get() + 1)}),
      at_.set(ir::load(last_, {bucket}) * ir::constant(kLanes) + place)};
  for (Stmt& step : copy_box(sides_, at_.get(), box_)) steps.push_back(std::move(step));
  steps.push_back(ir::make_store(filled_, {bucket}, ir::load(filled_, {bucket}) + 1));
  return steps;
}

Stmt SpatialHash::add() const {
  // widths_ is now the exponent of the first level's cells.
  const Expr level = ir::floordiv(width_exponent() + kLevelStep - widths_.get(), kLevelStep);
  std::vector<Stmt> steps = {
      level_.set(ir::min(ir::max(level, ir::constant(0)), ir::constant(kLevels - 1))),
      levels_.set(ir::max(levels_.get(), level_.get() + 1)),
      ir::make_store(used_, {level_.get()}, ir::load(used_, {level_.get()}) + 1)};
  for (Stmt& step : find_cells(level_.get())) steps.push_back(std::move(step));
  steps.push_back(for_cells(level_.get(), [&](const Expr& bucket) { return add_to(bucket); }));
  return ir::make_if(has_inside(), std::move(steps));
}

Stmt SpatialHash::test(const Local& dead, const TestChunk& chunk, const Stmt& all,
                       const Expr& blocks) const {
  const Expr limit = ir::min(ir::floordiv(blocks, 2), ir::constant(kMostNear));
  const auto levels = [&](const auto& body) {
    return count_to("l", levels_.get(), [&](const Expr& l) {
      return std::vector{ir::make_if(ir::less(ir::constant(0), ir::load(used_, {l})), body(l))};
    });
  };
  const Stmt measure = levels([&](const Expr& l) {
    std::vector<Stmt> steps = find_cells(l);
    steps.push_back(near_.set(near_.get() + ir::load(high_, {l}) * ir::load(wide_, {l})));
    return steps;
  });
  const Stmt collect = levels([&](const Expr& l) {
    return std::vector{for_cells(l, [&](const Expr& bucket) {
      return std::vector{ir::make_if(
          ir::less(ir::constant(0), ir::load(filled_, {bucket})),
          {ir::make_store(list_, {listed_.get()}, bucket), listed_.set(listed_.get() + 1),
           cost_.set(cost_.get() + chunks_of(bucket))})};
    })};
  });
  const Stmt each = count_to("n", listed_.get(), [&](const Expr& n) {
    std::vector<Stmt> step = chunk(sides_, at_.get() * ir::constant(kLanes));
    step.push_back(at_.set(ir::load(before_, {at_.get()})));
    const Stmt chain = count_to(
        "c", ir::select(dead.get(), ir::constant(0), chunks_of(bucket_.get())),
        [&](const Expr&) { return std::vector{ir::make_if(logical_not(dead.get()), step)}; });
    return std::vector{bucket_.set(ir::load(list_, {n})), at_.set(ir::load(last_, {bucket_.get()})),
                       chain};
  });
  const Stmt look =
      ir::make_if(ir::less_equal(near_.get(), limit),
                  {collect, ir::make_if(ir::less_equal(cost_.get(), blocks),
                                        {plainly_.set(ir::constant_bool(false)), each})});
  const Stmt near = ir::make_if(ir::less(ir::constant(1), limit), {measure, look});
  return ir::make_if(has_inside(),
                     {plainly_.set(ir::constant_bool(true)), near_.set(ir::constant(0)),
                      cost_.set(ir::constant(0)), listed_.set(ir::constant(0)), near,
                      ir::make_if(plainly_.get(), {all})});
}

}  // namespace hone::graph
