// Scans: a body of statements that goes through a row step by step and keeps few values (a running
// sum). The points of neighbouring rows take their steps together:
//   where rows lie side by side in memory (a sum down the columns of a matrix), in vectors
//     parallel blocks of columns:  for each step:  blocks of (unrolled) vectors of columns
//   else a few at once, so that one waits for its last value while the others run
//     parallel blocks of rows:  for each step, or each vector of steps:  rows (unrolled)
// Few long rows are cut into parts, each of which is summed up first (schedule/scan_parts.h):
//     parallel rows and parts but the last:  the part's total
//     parallel rows and parts:               the totals before it, then its steps in vectors
#include <algorithm>

#include "hone/compute/affine.h"
#include "hone/ir/ranges.h"
#include "hone/ir/scan_loop.h"
#include "hone/space/rules/cpu/rows.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using ir::StmtKind;
using schedule::Tail;

constexpr int64_t kMostKept = 4;  // elements that a point keeps
// That take their steps together: four hide the latency of a sum; of eight the code generator makes
// vectors by single elements, which takes nine times as long.
constexpr int64_t kMostRows = 4;
// Elements of all rows that are cut into parts: these are read twice, by phases that wait for each
// other.
constexpr int64_t kLeastScan = 4 * kLeastLongRow;
// Of a row, for vectors of steps: with fewer most lanes have nothing to do.
constexpr int64_t kLeastSteps = 8;
constexpr int64_t kLongRow = 128;  // steps from which on a row alone is as fast as several
// A row in parts is read twice, so that threads gain where they are this many for each row.
constexpr int64_t kThreadsPerRow = 3;

// What a body does, if it is a scan.
class Body {
 public:
  explicit Body(const compute::Stage& stage) : stage_(stage) {
    for (const compute::Axis& axis : stage.axes) vars_.push_back(axis.var);
    for (const ir::Stmt& s : stage.body) is_scan_ = is_scan_ && scan(*s, false);
    is_scan_ = is_scan_ && writes_in_loop_ && kept_ <= kMostKept;
  }
  [[nodiscard]] bool is_scan() const { return is_scan_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }  // of its widest element
  // The loop whose steps are neighbours in memory and may run in vectors; "" if there is none.
  [[nodiscard]] std::string steps() const {
    const bool neighbours = std::all_of(along_.begin(), along_.end(),
                                        [](int64_t stride) { return std::abs(stride) <= 1; });
    return loops_ == 1 && neighbours && ir::find_scan(*loop_) && length() >= kLeastSteps
               ? loop_->var->name
               : "";
  }
  [[nodiscard]] int64_t length() const { return ir::Ranges().of(loop_->extent).hi; }
  // Returns whether all runs have the same steps.
  [[nodiscard]] bool is_fixed() const {
    return ir::is_const_int(loop_->min) && ir::is_const_int(loop_->extent);
  }
  // Returns whether neighbouring points of an axis are neighbours wherever the body goes.
  [[nodiscard]] bool is_contiguous(size_t axis) const {
    return std::all_of(strides_.begin(), strides_.end(), [&](const auto& access) {
      return access[axis] == 1 || (access[axis] == 0 && access.back() == 0);
    });
  }

 private:
  bool scan(const ir::StmtNode& s, bool in_loop) {
    switch (s.kind) {
      case StmtKind::kBlock: break;
      case StmtKind::kAlloc:
        local_.push_back(s.buffer.get());
        kept_ += s.buffer->num_elements();
        bytes_ = std::max(bytes_, dtype_bytes(s.buffer->dtype));
        break;
      case StmtKind::kFor:
        if (!is_alike(s)) return false;
        vars_.push_back(s.var);
        in_loop = true;
        loop_ = &s;
        ++loops_;
        break;
      case StmtKind::kStore: {
        if (!note(s.buffer, s.indices, true)) return false;
        writes_in_loop_ |= in_loop && !is_local(s.buffer.get());
        bool simple = true;
        ir::visit(s.value, [&](const ir::Expr& e) {
          if (e->op == ir::Op::kLoad) simple = simple && note(e->buffer, e->args, false);
        });
        return simple;
      }
      default: return false;
    }
    return std::all_of(s.body.begin(), s.body.end(),
                       [&](const ir::Stmt& child) { return scan(*child, in_loop); });
  }

  // Returns whether a loop has the same iterations for all points, at most a known number of them.
  [[nodiscard]] bool is_alike(const ir::StmtNode& loop) const {
    return ir::Ranges().of(loop.extent).hi != ir::kPosInf &&
           std::none_of(vars_.begin(), vars_.end(), [&](const ir::VarPtr& var) {
             return ir::uses(loop.min, var.get()) || ir::uses(loop.extent, var.get());
           });
  }

  [[nodiscard]] bool is_local(const ir::Buffer* buffer) const {
    return std::count(local_.begin(), local_.end(), buffer) > 0;
  }

  // How far apart neighbouring points of each axis are in a buffer; last, whether it is written.
  bool note(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices, bool written) {
    if (is_local(buffer.get())) return true;
    bytes_ = std::max(bytes_, dtype_bytes(buffer->dtype));
    std::vector<int64_t> strides(vars_.size(), 0);
    int64_t elements = 1;
    for (size_t d = indices.size(); d-- > 0;) {
      const auto row = compute::affine_row(indices[d], vars_);
      if (!row) return false;
      for (size_t a = 0; a < strides.size(); ++a) strides[a] += row->coef[a] * elements;
      elements *= buffer->shape[d];
    }
    if (loops_ > 0) along_.push_back(strides.back());
    strides.resize(stage_.axes.size());
    strides.push_back(written ? 1 : 0);
    strides_.push_back(std::move(strides));
    return true;
  }

  const compute::Stage& stage_;
  std::vector<ir::VarPtr> vars_;
  std::vector<const ir::Buffer*> local_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<int64_t> along_;  // how far apart neighbouring steps are
  const ir::StmtNode* loop_ = nullptr;
  int64_t kept_ = 0, bytes_ = 1, loops_ = 0;
  bool is_scan_ = true, writes_in_loop_ = false;
};

class Scan : public Group {
 public:
  std::string stage, axis;         // the axis whose points take their steps together
  std::vector<std::string> outer;  // the others
  std::vector<std::string> axes;   // all
  int64_t extent = 1;              // of that axis
  int64_t length = 1;              // steps
  int64_t blocks = 1;              // points of the others
  int64_t lanes = 1;               // 1: the axis is not contiguous
  int cores = 1;
  DecisionId d_points;  // vectors or rows, unrolled
  DecisionId d_blocks;  // so many of these in a loop
  DecisionId d_lanes;   // steps in a vector of a row's
  std::string loop;     // of the body, whose steps these are

  [[nodiscard]] bool legal(const Choice& choice) const override {
    return choice[d_blocks] == 1 || (choice[d_blocks] - 1) * choice[d_points] * lanes < extent;
  }

  // As many as leave work for all cores.
  void set_default(MutableChoice& choice) const override {
    choice.set_index(d_lanes, 1);
    choice.set_index(d_points, 0);
    if (d_lanes.is_open() && length >= kLongRow)
      return;  // its vectors wait for nothing but one sum
    for (choice.set_last(d_points); choice.index(d_points) > 0;
         choice.set_index(d_points, choice.index(d_points) - 1)) {
      const int64_t points = choice[d_points] * lanes;
      if (blocks * ((extent + points - 1) / points) >= cores && (lanes > 1 || extent % points == 0))
        break;
    }
  }

  void append_steps(const Choice& choice, schedule::Steps& steps) const override {
    append_points(choice, steps);
    if (choice[d_lanes] > 1) steps.push_back(schedule::Vectorize{stage, loop});
  }

 private:
  void append_points(const Choice& choice, schedule::Steps& steps) const {
    if (axes.empty()) return;
    if (lanes == 1 && choice[d_points] == 1) {
      steps.push_back(schedule::Parallel{stage, fuse_loops(stage, axes, steps)});
      return;
    }
    std::vector<std::string> order = outer;
    std::vector<int64_t> lengths = {choice[d_points]};
    if (d_blocks.is_open()) lengths.insert(lengths.begin(), choice[d_blocks]);
    if (lanes > 1) lengths.push_back(lanes);
    steps.push_back(schedule::Split{stage, axis, lengths, Tail::kMask});
    order.push_back(axis + ".0");
    std::vector<std::string> inner;
    for (size_t i = 1; i <= lengths.size(); ++i) inner.push_back(fmt::format("{}.{}", axis, i));
    std::vector<std::string> all = order;
    all.insert(all.end(), inner.begin(), inner.end());
    steps.push_back(schedule::Reorder{stage, std::move(all)});
    steps.push_back(schedule::Parallel{stage, fuse_loops(stage, order, steps)});
    steps.push_back(schedule::Sink{stage, inner[0]});
    steps.push_back(schedule::Unroll{stage, inner[d_blocks.is_open() ? 1 : 0]});
    if (lanes > 1) steps.push_back(schedule::Vectorize{stage, inner.back()});
  }
};

class ScanParts : public RowParts {
 public:
  std::string stage, loop;  // the loop of its body
  std::vector<std::string> axes;
  int64_t length = 1;

  void append_steps(const Choice& choice, schedule::Steps& steps) const override {
    steps.push_back(schedule::RFactor{stage, loop, part_of(length, choice[d_parts])});
    std::vector<std::string> tiles = axes;
    tiles.push_back(loop + "o");
    for (const std::string& part : {stage + ".rf", stage})
      steps.push_back(schedule::Parallel{part, fuse_loops(part, tiles, steps)});
    steps.push_back(schedule::Vectorize{stage, loop});
  }
};

}  // namespace

Fit add_scan_parts(SketchBuilder& builder, const Task&) {
  if (builder.state.stages.size() != 1) return Fit::kNone;
  const compute::Stage& what = builder.state.stages[0].info->stage;
  if (!what.is_extern()) return Fit::kNone;
  const Body body(what);
  if (!body.is_scan() || body.steps().empty() || !body.is_fixed()) return Fit::kNone;
  auto group = std::make_shared<ScanParts>();
  group->stage = what.name;
  group->loop = body.steps();
  group->length = body.length();
  group->cores = builder.cpu().cores;
  group->axes = names_of(what.axes);
  for (const compute::Axis& axis : what.axes) group->rows *= axis.extent;
  const std::vector<int64_t> parts = row_parts(group->length);
  if (parts.empty() || group->rows >= group->cores || group->rows * group->length < kLeastScan)
    return Fit::kNone;
  builder.for_threads = true;
  group->decide(builder, what.name, parts);
  const bool is_default = group->rows * kThreadsPerRow <= group->cores;
  builder.groups.push_back(std::move(group));
  return is_default ? Fit::kBest : Fit::kPossible;
}

bool add_scan(SketchBuilder& builder, const std::string& stage) {
  const compute::Stage& what = builder.info(stage)->stage;
  const Body body(what);
  if (!body.is_scan()) return false;
  auto group = std::make_shared<Scan>();
  group->stage = stage;
  group->cores = builder.cpu().cores;
  const int64_t lanes = builder.cpu().lanes(static_cast<int>(body.bytes()));
  // The contiguous axis if there are lanes for it, else the last one with points.
  int chosen = -1;
  for (int a = 0; a < std::ssize(what.axes); ++a) {
    if (what.axes[a].extent > 1 && body.is_contiguous(a)) chosen = a;
  }
  if (chosen >= 0 && what.axes[chosen].extent >= lanes) group->lanes = lanes;
  for (int a = 0; a < std::ssize(what.axes) && group->lanes == 1; ++a) {
    if (what.axes[a].extent > 1) chosen = a;
  }
  if (chosen < 0 && body.steps().empty()) return false;
  if (chosen >= 0) {
    group->axis = what.axes[chosen].var->name;
    group->extent = what.axes[chosen].extent;
  }
  group->axes = names_of(what.axes);
  for (int a = 0; a < std::ssize(what.axes); ++a) {
    if (a == chosen) continue;
    group->outer.push_back(what.axes[a].var->name);
    group->blocks *= what.axes[a].extent;
  }
  const int64_t most = group->lanes > 1 ? builder.cpu().vector_registers / 2 : kMostRows;
  std::vector<int64_t> points;
  for (int64_t n = 1; n <= most && (n == 1 || (n - 1) * group->lanes < group->extent); n *= 2)
    points.push_back(n);
  group->length = body.length();
  group->d_points = builder.add_decision(stage, group->lanes > 1 ? "scan_vectors" : "scan_rows",
                                         DecisionKind::kUnroll, points);
  if (group->lanes > 1) {
    std::vector<int64_t> blocks;
    for (int64_t n = 1; n == 1 || (n <= 64 && (n - 1) * group->lanes < group->extent); n *= 2)
      blocks.push_back(n);
    group->d_blocks = builder.add_decision(stage, "scan_blocks", DecisionKind::kTile, blocks);
  }
  const int64_t row_lanes = builder.cpu().lanes(static_cast<int>(body.bytes()));
  if (group->lanes == 1 && row_lanes > 1) group->loop = body.steps();
  if (!group->loop.empty()) {
    group->d_lanes = builder.add_decision(stage, "scan_lanes", DecisionKind::kTile, {1, row_lanes});
  }
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
