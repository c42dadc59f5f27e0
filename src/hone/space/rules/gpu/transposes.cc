// Pointwise stages whose operands lie in another order than their results, such as transposes and
// copies to channels last: a tile passes through shared memory, so that both sides access rows
// (Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA").
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/copies.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::Steps;

constexpr int64_t kBankBytes = 4;  // rows of a tile are so far apart in banks
constexpr int64_t kLeastRow = 5;   // shorter rows are read whole by a few neighbouring threads
constexpr int64_t kLeastTile = 8, kUsualTile = 64, kMostTile = 128;
constexpr int64_t kUsualThreads = 256, kMostThreads = 512, kBlocksPerSm = 2;
constexpr size_t kMostOperands = 2;
constexpr int64_t kMostUnrolled = 32;  // vectors of a thread in straight-line code

// for tiles, in parallel:
//   C: for threads:  for vectors:  the operand's tile in shared memory, along the operand's rows
//   E: for threads:  for vectors:  the tile of results, along their rows
class Transposes : public Group {
 public:
  // The copy of an operand; its axes in the order of the operand's memory.
  struct Copy {
    std::string stage;
    std::vector<std::string> axes;
    int64_t row = 1;  // extent of the last one
    int64_t element_bytes = 4;
  };
  // A tiled axis of E.
  struct Side {
    std::string name;
    int64_t extent = 1;
    DecisionId d_tile;
  };
  std::string stage;
  std::vector<std::string> outer;  // E's other axes
  Side column, row;                // neighbours in the results, and in the operands
  std::vector<Copy> copies;
  int64_t others = 1;  // points of the other axes
  int64_t sms = 1, most_shared = 0, most_threads = 0;
  DecisionId d_vector, d_threads;

  [[nodiscard]] static int64_t tile(const Side& side, const Choice& choice) {
    return std::min(choice[side.d_tile], side.extent);
  }

  [[nodiscard]] bool legal(const Choice& choice) const override {
    int64_t bytes = 0;
    const int64_t columns = tile(column, choice), rows = tile(row, choice);
    for (const Copy& copy : copies) bytes += columns * (rows * copy.element_bytes + kBankBytes);
    const int64_t vector = choice[d_vector];
    return bytes <= most_shared && choice[column.d_tile] % vector == 0 &&
           choice[d_threads] <= most_threads &&
           choice[d_threads] * vector <= round_up(rows * columns, 32 * vector);
  }

  // Large tiles, unless they leave SMs without work.
  void set_default(MutableChoice& choice) const override {
    choice.set_last(d_vector);
    choice.set(column.d_tile, kUsualTile);
    choice.set(row.d_tile, kUsualTile);
    const auto blocks = [&] {
      return others * ceil_div(column.extent, choice[column.d_tile]) *
             ceil_div(row.extent, choice[row.d_tile]);
    };
    choice.set(d_threads, std::min(kUsualThreads, most_threads));
    while (blocks() < kBlocksPerSm * sms || !legal(choice)) {
      const bool is_wide = choice[column.d_tile] > choice[row.d_tile];
      const DecisionId longer = is_wide ? column.d_tile : row.d_tile;
      if (choice.index(longer) == 0) break;
      choice.set_index(longer, choice.index(longer) - 1);
    }
    while (!legal(choice) && choice.index(d_threads) > 0)
      choice.set_index(d_threads, choice.index(d_threads) - 1);
    while (!legal(choice) && choice.index(d_vector) > 0)
      choice.set_index(d_vector, choice.index(d_vector) - 1);
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    const int64_t vector = choice[d_vector];
    std::string across = column.name;
    if (vector > 1) {
      steps.emplace_back(schedule::Split{stage, column.name, {vector}});
      across += ".0";
    }
    steps.emplace_back(schedule::Split{stage, across, {choice[column.d_tile] / vector}});
    steps.emplace_back(schedule::Split{stage, row.name, {choice[row.d_tile]}});
    std::vector<std::string> grid = outer;
    grid.insert(grid.end(), {row.name + ".0", across + ".0"});
    const std::vector<std::string> inside = {row.name + ".1", across + ".1"};
    std::vector<std::string> loops = grid;
    loops.insert(loops.end(), inside.begin(), inside.end());
    if (vector > 1) loops.push_back(column.name + ".1");
    steps.emplace_back(schedule::Reorder{stage, std::move(loops)});
    const std::string block = fuse_loops(stage, grid, steps);
    steps.emplace_back(schedule::Parallel{stage, block});
    const int64_t vectors = ceil_div(tile(column, choice), vector) * tile(row, choice);
    append_threads(stage, inside, vectors, choice[d_threads], kMostUnrolled, steps);
    if (vector > 1) steps.emplace_back(schedule::Vectorize{stage, column.name + ".1"});
    for (const Copy& copy : copies) append_copy(copy, block, choice, steps);
  }

 private:
  void append_copy(const Copy& copy, const std::string& block, const Choice& choice,
                   Steps& steps) const {
    SharedCopy made{copy.stage, stage, block, copy.axes, copy.axes};
    made.pad = std::max<int64_t>(1, kBankBytes / copy.element_bytes);
    const int64_t rows = tile(row, choice);
    made.elements = tile(column, choice) * rows;
    made.vector = kVectorBytes / copy.element_bytes;
    while (made.vector > 1 && (rows % made.vector != 0 || copy.row % made.vector != 0))
      made.vector /= 2;
    made.threads = choice[d_threads];
    made.most_unrolled = kMostUnrolled;
    space::append_copy(made, steps);
  }
};

// Returns whether an operand's tile is one of E's: each dimension has one place or is one axis.
bool is_plain(const compute::Access& read) {
  std::vector<size_t> seen;
  for (const compute::AffineRow& row : read.index) {
    size_t terms = 0;
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] == 0) continue;
      if (row.coef[a] != 1 || ++terms > 1 || std::count(seen.begin(), seen.end(), a) > 0)
        return false;
      seen.push_back(a);
    }
  }
  return true;
}

// Returns the axis whose points are neighbours in an operand, if they are not neighbours in the
// results and the operand is read in one way only; -1 otherwise.
int row_of(const StageInfo& e, const compute::Access& read, int column) {
  const auto reads = std::count_if(e.reads.begin(), e.reads.end(),
                                   [&](const auto& other) { return other.buffer == read.buffer; });
  if (reads != 1 || read.guarded || !read.buffer->values.empty() || !is_plain(read) ||
      read.buffer->shape.empty() || read.buffer->shape.back() == 1 ||
      stride_of(read, static_cast<size_t>(column)) < 2)
    return -1;
  for (int a = 0; a < e.num_spatial(); ++a) {
    if (a != column && e.axes[static_cast<size_t>(a)].extent > 1 &&
        is_contiguous(read, static_cast<size_t>(a)))
      return a;
  }
  return -1;
}

// Copies an operand; nothing if that is not possible.
std::optional<Transposes::Copy> copy_of(SketchBuilder& builder, const std::string& stage,
                                        const std::string& buffer) {
  if (!builder.add_step(schedule::CacheRead{buffer, stage}).ok()) return std::nullopt;
  const int place = builder.state.find_stage(stage) - 1;
  const StageInfo& info = *builder.state.stages[static_cast<size_t>(place)].info;
  return Transposes::Copy{info.stage.name, names_of(info.stage.axes), info.stage.axes.back().extent,
                          dtype_bytes(info.stage.outputs[0].buffer->dtype)};
}

void add_decisions(SketchBuilder& builder, const StageInfo& e, Transposes& group) {
  const target::Gpu& gpu = builder.target.gpu();
  const auto add = [&](const std::string& role, DecisionKind kind, int64_t from, int64_t most,
                       int64_t extent) {
    return builder.add_decision(group.stage, role, kind, powers_of_2(std::min(from, most), most),
                                extent, extent > 0);
  };
  group.column.d_tile =
      add("column.tile", DecisionKind::kTile, kLeastTile, kMostTile, group.column.extent);
  group.row.d_tile = add("row.tile", DecisionKind::kTile, kLeastTile, kMostTile, group.row.extent);
  int64_t vector = kVectorBytes / dtype_bytes(e.stage.outputs[0].buffer->dtype);
  while (group.column.extent % vector != 0) vector /= 2;
  if (vector > 1) group.d_vector = add("vector", DecisionKind::kVector, 1, vector, 0);
  group.most_threads = gpu.threads_per_block;
  group.d_threads = add("threads", DecisionKind::kParallel, gpu.warp,
                        std::min<int64_t>(kMostThreads, gpu.threads_per_block), 0);
}

}  // namespace

bool add_stage_transposes(SketchBuilder& builder, const std::string& stage) {
  const schedule::StageInfoPtr e = builder.info(stage);
  if (e->constant || e->stage.is_extern() || e->stage.where || !e->stage.reduce.empty() ||
      e->stage.outputs.size() != 1)
    return false;
  const int column = unit_stride_axis(*e);
  if (column < 0 || e->axes[static_cast<size_t>(column)].extent < kLeastRow) return false;
  int row = -1;
  std::vector<std::string> operands;
  for (const compute::Access& read : e->reads) {
    const int found = row_of(*e, read, column);
    if (found < 0 || (row >= 0 && found != row) || operands.size() == kMostOperands) continue;
    row = found;
    operands.push_back(read.buffer->name);
  }
  if (row < 0) return false;
  auto group = std::make_shared<Transposes>();
  group->stage = stage;
  for (const std::string& operand : operands) {
    auto copy = copy_of(builder, stage, operand);
    if (!copy) return false;
    group->copies.push_back(*std::move(copy));
  }
  for (int a = 0; a < e->num_spatial(); ++a) {
    const compute::Axis& axis = e->axes[static_cast<size_t>(a)];
    if (a == column || a == row) {
      Transposes::Side& side = a == column ? group->column : group->row;
      side.name = axis.var->name;
      side.extent = axis.extent;
    } else {
      group->outer.push_back(axis.var->name);
      group->others *= axis.extent;
    }
  }
  group->sms = builder.target.gpu().sms;
  group->most_shared = builder.target.gpu().shared_bytes;
  add_decisions(builder, *e, *group);
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
