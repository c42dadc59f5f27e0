#include "hone/ir/passes/prefetch_blocks.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "hone/base/round_up.h"
#include "hone/ir/passes/tile_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// The lines of early hints move on by a multiple of 1 / kShares of a line with each step.
constexpr int64_t kShares = 4;

struct Digit {  // a digit of the number of steps since the block began, outermost first
  Expr value;
  int64_t extent;
};

struct Extent {  // how far a loop of the register tile or around it moves in memory
  int64_t stride;
  int64_t count;
};

// The number of elements, if the loops together touch a range without holes, each once.
std::optional<int64_t> dense(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.stride < b.stride; });
  int64_t size = 1;
  for (const Extent& e : extents) {
    if (e.stride != size) return std::nullopt;
    size *= e.count;
  }
  return size;
}

// The reads of the register tile inside an innermost loop: a load of each buffer, and the tile's
// loops.
struct TileReads {
  std::vector<Expr> loads;
  std::vector<const StmtNode*> units;

  void add(const StmtNode& s, const std::vector<BufferPtr>& wanted) {
    if (is_unit(s)) units.push_back(&s);
    if (!s.value) return;
    visit(s.value, [&](const Expr& e) {
      if (e->op != Op::kLoad || std::find(wanted.begin(), wanted.end(), e->buffer) == wanted.end())
        return;
      // A place that memory holds says nothing of the next one.
      if (std::any_of(e->args.begin(), e->args.end(), has_load)) return;
      const bool is_new = std::none_of(loads.begin(), loads.end(),
                                       [&](const Expr& l) { return l->buffer == e->buffer; });
      if (is_new) loads.push_back(e);
    });
  }
};

// Returns for how many steps of the variable an atom keeps its value: v -> 1, v // c and v // c % n
// -> c.
std::optional<int64_t> steps_alike(const Expr& atom, const VarPtr& var) {
  if (atom->op == Op::kVar) return atom->var == var ? std::optional<int64_t>(1) : std::nullopt;
  if (atom->op == Op::kFloorMod && is_const_int(atom->args[1]))
    return steps_alike(atom->args[0], var);
  const bool divides = atom->op == Op::kFloorDiv && is_const_int(atom->args[1]);
  if (!divides || atom->args[0]->op != Op::kVar || atom->args[0]->var != var) return std::nullopt;
  return atom->args[1]->int_value;
}

// A block that is read `reuse` times in a row, in steps of the innermost loop.
struct Block {
  Linear base;  // where it begins, flat
  int64_t size = 0;
  int64_t next = 0;  // from here to the next block
  int64_t reuse = 1;
  std::vector<Digit> digits;  // digits of the step, those of reads of the whole block first
  int cache = 2;              // where the next block goes
  // Early hints depend on the reads of the block that a run has, null if that is not known, and on
  // the hints of a step.
  Expr reads_now;
  int64_t hints = 0;
};

class Pass {
 public:
  Pass(std::vector<BufferPtr> buffers, const PrefetchOptions& options)
      : buffers_(std::move(buffers)), options_(options) {}

  Stmt run(const Stmt& s) {
    if (s->body.empty()) return s;
    const bool is_scratch = s->kind == StmtKind::kAlloc && s->buffer->scope == Scope::kThread;
    if (is_scratch && !s->buffer->shape.empty()) buffers_.push_back(s->buffer);
    const bool is_loop = s->kind == StmtKind::kFor && !is_unit(*s);
    if (is_loop) loops_.push_back(s.get());
    std::vector<Stmt> body;
    const bool innermost = is_loop && std::none_of(s->body.begin(), s->body.end(), has_serial_loop);
    if (innermost && s->for_kind == ForKind::kSerial) body = prefetches(*s);
    for (const Stmt& child : s->body) body.push_back(run(child));
    if (is_loop) loops_.pop_back();
    return with_body(*s, std::move(body));
  }

 private:
  std::vector<Stmt> prefetches(const StmtNode& loop) const {
    TileReads reads;
    for (const Stmt& child : loop.body)
      for_each_stmt(*child, [&](const StmtNode& s) { reads.add(s, buffers_); });
    std::vector<Stmt> all;
    for (const Expr& load : reads.loads) {
      std::optional<Block> block = choose_block(load, reads.units);
      if (!block) continue;
      if (options_.is_early) start_early(*block, load, reads.units);
      for (Stmt& s : spread(load, *block)) all.push_back(std::move(s));
    }
    return all;
  }

  std::optional<Block> choose_block(const Expr& load,
                                    const std::vector<const StmtNode*>& units) const {
    const int64_t element = dtype_bytes(load->buffer->dtype);
    const Linear flat = flat_index(load);
    std::optional<Block> block = find_block(flat, units, true);
    if (!block || block->reuse < options_.min_reuse) {
      const bool is_large = load->buffer->bytes() >= options_.min_stream;
      if (!is_large || rows_of(flat, units) < options_.min_rows) return std::nullopt;
      block = find_block(flat, units, false);
      if (block) block->cache = 1;  // it is needed at once
    }
    if (!block || block->size * element > options_.max_block) return std::nullopt;
    return block;
  }

  // Returns how often the register tile uses an element that it has loaded: multiplications per
  // load.
  static int64_t rows_of(const Linear& flat, const std::vector<const StmtNode*>& units) {
    int64_t rows = 1;
    for (const StmtNode* unit : units) {
      const bool again = flat.coefficient(unit->var) == 0 && is_const_int(unit->extent);
      if (again) rows *= unit->extent->int_value;
    }
    return rows;
  }

  // `whole`: as many inner loops as run through memory without a hole; else the innermost only.
  std::optional<Block> find_block(const Linear& flat, const std::vector<const StmtNode*>& units,
                                  bool whole) const {
    Block block;
    block.base = flat;
    std::vector<Extent> extents;
    for (const StmtNode* unit : units) {
      if (!counts_from_zero(*unit)) return std::nullopt;
      const int64_t stride = block.base.coefficient(unit->var);
      if (stride != 0) extents.push_back({stride, unit->extent->int_value});
      block.base = without(block.base, variable(unit->var));
      if (depends(block.base, unit->var)) return std::nullopt;
    }
    for (size_t l = loops_.size(); l > 0; --l) {
      const StmtNode& loop = *loops_[l - 1];
      if (!counts_from_zero(loop)) return std::nullopt;
      const Expr var = variable(loop.var);
      const int64_t count = loop.extent->int_value;
      const int64_t stride = block.base.coefficient(loop.var);
      if (stride > 0 && block.reuse == 1 && (whole || l == loops_.size())) {
        std::vector<Extent> wider = extents;
        wider.push_back({stride, count});
        if (dense(wider)) {
          extents = std::move(wider);
          block.base = without(block.base, var);
          if (depends(block.base, loop.var)) return std::nullopt;
          add_digit(block, {var, count});
          continue;
        }
      }
      Digit again = {var, count};
      const std::pair<Expr, int64_t>* mover = nullptr;
      for (const auto& term : block.base.terms) {
        if (!uses(term.first, loop.var.get())) continue;
        const std::optional<int64_t> period = steps_alike(term.first, loop.var);
        if (mover != nullptr || !period) return std::nullopt;
        mover = &term;
        again = {floormod(var, *period), *period};
      }
      block.reuse *= again.extent;
      add_digit(block, again);
      if (mover == nullptr) continue;
      const std::optional<int64_t> size = dense(extents);
      if (!size || mover->second < *size) return std::nullopt;
      block.size = *size;
      block.next = mover->second;
      return block;
    }
    return std::nullopt;
  }

  static void add_digit(Block& block, Digit digit) {
    if (digit.extent > 1) block.digits.insert(block.digits.begin(), std::move(digit));
  }

  // Lets the hints of the block come with as few reads of it as can have them all: as many as a run
  // has, if that is known, else as few as possible, after which they repeat for lines that are in
  // the cache already.
  void start_early(Block& block, const Expr& load,
                   const std::vector<const StmtNode*>& units) const {
    int64_t work = 1;
    for (const StmtNode* unit : units)
      if (unit->for_kind != ForKind::kVectorized) work *= unit->extent->int_value;
    Digit read = {constant(0), 1};
    auto inner = block.digits.begin();
    for (; read.extent < block.reuse; ++inner)
      read = {read.value * inner->extent + inner->value, read.extent * inner->extent};
    int64_t steps = 1;
    for (auto digit = inner; digit != block.digits.end(); ++digit) steps *= digit->extent;
    const int64_t hints = std::max<int64_t>(work / options_.min_work, 1);
    const int64_t lines = lines_of(load->buffer, block);
    const auto reads = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(ceil_div(lines, hints * steps), 1))));
    if (reads >= read.extent) return;
    block.reads_now = reads_of_run(read.extent, rows_of(flat_index(load), units));
    block.hints = std::min(hints, ceil_div(lines, steps));  // with one read, that is all
    if (block.reads_now) return;
    block.digits.erase(block.digits.begin(), inner);
    add_digit(block, {floormod(read.value, reads), reads});
  }

  // Returns how often a run reads a block that is read so often for tiles of so many rows at most;
  // null if no extent of the run tells.
  [[nodiscard]] Expr reads_of_run(int64_t reads, int64_t rows) const {
    Expr now;
    for (const RunExtent& extent : options_.run_extents) {
      const bool counts_rows =
          ceil_div(extent.most, rows) == reads || reads * rows % extent.most == 0;
      if (!counts_rows) continue;
      const Expr all = now ? now : constant(reads);
      now = floordiv(all * extent.now + (extent.most - 1), extent.most);
    }
    return now;
  }

  [[nodiscard]] static int64_t lines_of(const BufferPtr& buffer, const Block& block) {
    return ceil_div(block.size * dtype_bytes(buffer->dtype), kLineBytes);
  }

  // In each step as many elements of the next block as all steps together need.
  static std::vector<Stmt> spread(const Expr& load, const Block& block) {
    Expr step = constant(0);
    int64_t steps = 1;
    for (const Digit& digit : block.digits) {
      step = step * digit.extent + digit.value;
      steps *= digit.extent;
    }
    if (block.reads_now) return spread_early(load->buffer, block, step, steps);
    const int64_t part = (block.size + steps - 1) / steps;
    const Expr first = to_expr(block.base) + step * part + block.next;
    return prefetch_lines(load->buffer, first, part, block.cache);
  }

  // In each step some lines of the next block, which begin so many shares of a line behind those of
  // the step before as the run's steps together need. What a step does not need is of later steps:
  // a hint for a line that comes already costs less than the numbers that would leave it out.
  static std::vector<Stmt> spread_early(const BufferPtr& buffer, const Block& block,
                                        const Expr& step, int64_t steps) {
    const Expr next = to_expr(block.base) + block.next;
    const int64_t lines = lines_of(buffer, block), steps_of_read = steps / block.reuse;
    Expr part = constant(1);
    for (int64_t fewer = 1; fewer < block.hints * kShares; ++fewer) {
      const int64_t reads = ceil_div(lines * kShares, steps_of_read * fewer);
      part = part + (constant(1) - min(floordiv(block.reads_now, reads), constant(1)));
    }
    const Expr line =
        min(floordiv(step * part, kShares), constant(lines - std::min(lines, block.hints)));
    const Expr first = next + line * elements_of_line(buffer);
    return prefetch_lines(buffer, first, block.hints * elements_of_line(buffer), block.cache);
  }

  std::vector<BufferPtr> buffers_;  // whose loads count
  PrefetchOptions options_;
  std::vector<const StmtNode*> loops_;  // around the statement at hand, the outermost first
};

}  // namespace

Program prefetch_blocks(Program program, const PrefetchOptions& options) {
  std::vector<BufferPtr> buffers;
  for (const Param& param : program.params) {
    if (!param.buffer->shape.empty()) buffers.push_back(param.buffer);
  }
  return map_run_phases(std::move(program),
                        [&](const Stmt& s) { return Pass(buffers, options).run(s); });
}

}  // namespace hone::ir
