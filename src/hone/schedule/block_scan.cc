#include "hone/schedule/block_scan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "hone/base/round_up.h"
#include "hone/ir/linear.h"
#include "hone/ir/scan_loop.h"
#include "hone/ir/visit.h"
#include "hone/schedule/block_statements.h"
#include "hone/schedule/scan_parts.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMostElements = 16;  // of a thread in a round
constexpr int64_t kBanks = 32;         // one more element after so many keeps banks apart

// What one step of a scan adds, and where the result goes.
struct ScanStep {
  Op op;           // joins sums: kAdd or kMul
  Expr added;      // the other operand of the update
  Stmt write;      // the store of the result
  bool is_before;  // the result does not have what the step adds
};

std::optional<ScanStep> step_of(const ScanBody& scan) {
  if (scan.loop->body.size() != 2) return std::nullopt;
  ScanStep step{*ir::reduction_op(*scan.update), nullptr, nullptr, false};
  step.is_before = scan.loop->body[1] == scan.update;
  step.write = scan.loop->body[step.is_before ? 0 : 1];
  const Expr& value = scan.update->value;
  for (size_t i = 0; i < value->args.size() && value->args.size() == 2; ++i) {
    const Expr& sum = value->args[i];
    if (sum->op == Op::kLoad && sum->buffer == scan.sum) step.added = value->args[1 - i];
  }
  // Threads compute results behind the last element, too, where nothing may be read.
  bool is_sum_alone = step.write->buffer != scan.sum;
  ir::visit(step.write->value, [&](const Expr& e) {
    is_sum_alone = is_sum_alone && (e->op != Op::kLoad || e->buffer == scan.sum);
  });
  return step.added && is_sum_alone ? std::optional(step) : std::nullopt;
}

std::optional<ScanBody> scan_of(const compute::Stage& stage) {
  if (stage.body.size() != 1 || stage.body[0]->body.size() != 2 ||
      stage.body[0]->body[1]->kind != StmtKind::kFor)
    return std::nullopt;
  return match_scan(stage, stage.body[0]->body[1]->var->name);
}

class BlockScan {
 public:
  BlockScan(const ScanBody& scan, ScanStep step, int64_t threads)
      : scan_(scan),
        step_(std::move(step)),
        threads_(threads),
        length_(scan.loop->extent->int_value),
        each_(std::min<int64_t>(
            kMostElements, static_cast<int64_t>(
                               std::bit_ceil(static_cast<uint64_t>(ceil_div(length_, threads)))))),
        rounds_(ceil_div(length_, threads * each_)),
        type_(scan.sum->dtype),
        totals_(ir::make_buffer("totals", type_, {threads + threads / kBanks}, ir::Scope::kShared)),
        joined_(ir::make_buffer("joined", type_, {kJoiners}, ir::Scope::kShared)),
        own_(ir::make_buffer("own", type_, {threads, each_}, ir::Scope::kFragment)),
        results_(ir::make_buffer("results", step_.write->buffer->dtype, {threads, each_},
                                 ir::Scope::kFragment)),
        carry_(ir::make_buffer("carry", type_, {threads}, ir::Scope::kFragment)) {}

  Stmt body() const {
    const Stmt first = on_threads(threads_, [&](const Expr& t) {
      return Stmts{ir::make_store(carry_, {t}, scan_.first->value)};
    });
    const Stmt rounds = repeat(rounds_, ir::ForKind::kSerial, [&](const Expr& round) {
      return Stmts{sum_up(round), join(), write(round)};
    });
    return ir::make_block(with({totals_, joined_, own_, results_, carry_}, {first, rounds}));
  }

 private:
  [[nodiscard]] Expr joined(const Expr& a, const Expr& b) const {
    return ir::make(step_.op, {a, b});
  }
  [[nodiscard]] Expr identity() const { return identity_of(scan_); }
  [[nodiscard]] static Expr padded(const Expr& t) { return t + ir::floordiv(t, kBanks); }
  [[nodiscard]] Expr first_of(const Expr& round, const Expr& t) const {
    return (round * threads_ + t) * each_;
  }
  [[nodiscard]] bool has_whole_chunks() const { return length_ % each_ == 0; }
  // Whether a thread has an element; that of whole chunks is the same for all of them.
  [[nodiscard]] Expr exists(const Expr& chunk, const Expr& j) const {
    return ir::less(has_whole_chunks() ? chunk : chunk + j, number(length_));
  }
  [[nodiscard]] bool is_exact() const { return rounds_ * threads_ * each_ == length_; }

  // Each thread sums up what it has.
  [[nodiscard]] Stmt sum_up(const Expr& round) const {
    return on_threads(threads_, [&](const Expr& t) {
      const OwnValue sum("sum", type_);
      const Expr chunk = first_of(round, t);
      const Stmt take = repeat(each_, ir::ForKind::kVectorized, [&](const Expr& j) {
        const Expr added = ir::substitute(step_.added, {{scan_.loop->var, chunk + j}});
        return Stmts{ir::make_store(
            own_, {t, j}, is_exact() ? added : ir::select(exists(chunk, j), added, identity()))};
      });
      const Stmt add = repeat(each_, ir::ForKind::kUnrolled, [&](const Expr& j) {
        return Stmts{sum.set(updated(sum.get(), ir::load(own_, {t, j}))),
                     ir::make_store(own_, {t, j}, sum.get())};
      });
      return with({sum.buffer}, {take, sum.set(identity()), add,
                                 ir::make_store(totals_, {padded(t)}, sum.get())});
    });
  }
  // The update with another sum and another operand.
  [[nodiscard]] Expr updated(const Expr& sum, const Expr& added) const {
    const bool sum_first = scan_.update->value->args[1] == step_.added;
    return ir::with_args(*scan_.update->value,
                         sum_first ? std::vector{sum, added} : std::vector{added, sum});
  }

  // Totals of neighbouring threads become sums of those before them.
  [[nodiscard]] Stmt join() const {
    const int64_t group = threads_ / kJoiners;
    return on_threads(kJoiners, [&](const Expr& t) {
      const OwnValue before("before", type_), own("own_total", type_);
      const Stmt all = repeat(group, ir::ForKind::kSerial, [&](const Expr& j) {
        const Expr at = padded(t * group + j);
        return Stmts{own.set(ir::load(totals_, {at})), ir::make_store(totals_, {at}, before.get()),
                     before.set(joined(before.get(), own.get()))};
      });
      return with({before.buffer, own.buffer},
                  {before.set(identity()), all, ir::make_store(joined_, {t}, before.get())});
    });
  }

  [[nodiscard]] Stmt write(const Expr& round) const {
    const int64_t group = threads_ / kJoiners;
    return on_threads(threads_, [&](const Expr& t) {
      const OwnValue base("base", type_), all("all", type_);
      const Expr chunk = first_of(round, t);
      const Stmt earlier = repeat(kJoiners, ir::ForKind::kUnrolled, [&](const Expr& j) {
        const Expr total = ir::load(joined_, {j});
        const Expr is_earlier = ir::less(j, ir::floordiv(t, group));
        return Stmts{base.set(joined(base.get(), ir::select(is_earlier, total, identity()))),
                     all.set(joined(all.get(), total))};
      });
      const auto result = [&](const Expr& sum, const Expr& j) {
        const Expr value = ir::rewrite(step_.write->value, [&](const Expr& e) {
          return e->op == Op::kLoad && e->buffer == scan_.sum ? sum : nullptr;
        });
        return ir::make_store(results_, {t, j},
                              ir::substitute(value, {{scan_.loop->var, chunk + j}}));
      };
      const Stmt results = repeat(each_, ir::ForKind::kUnrolled, [&](const Expr& j) {
        const Expr sum = joined(base.get(), ir::load(own_, {t, j}));
        if (!step_.is_before) return Stmts{result(sum, j)};
        return Stmts{result(all.get(), j), all.set(sum)};
      });
      const Stmt stores = repeat(each_, ir::ForKind::kVectorized, [&](const Expr& j) {
        std::vector<Expr> to;
        for (const Expr& index : step_.write->indices)
          to.push_back(ir::substitute(index, {{scan_.loop->var, chunk + j}}));
        const Stmt store = ir::make_store(step_.write->buffer, to, ir::load(results_, {t, j}));
        return Stmts{is_exact() || has_whole_chunks() ? store
                                                      : ir::make_if(exists(chunk, j), {store})};
      });
      const bool tests = !is_exact() && has_whole_chunks();
      const Stmt guarded = tests ? ir::make_if(exists(chunk, number(0)), {stores}) : stores;
      return with({base.buffer, all.buffer},
                  {base.set(ir::load(carry_, {t})), all.set(ir::load(carry_, {t})), earlier,
                   ir::make_store(carry_, {t}, all.get()),
                   base.set(joined(base.get(), ir::load(totals_, {padded(t)}))),
                   all.set(base.get()), results, guarded});
    });
  }

  const ScanBody& scan_;
  ScanStep step_;
  int64_t threads_, length_, each_, rounds_;
  DType type_;
  ir::BufferPtr totals_, joined_;        // of each thread, of each kJoiners-th part of the threads
  ir::BufferPtr own_, results_, carry_;  // sums of a thread; carry_: of the rounds before
};

}  // namespace

std::optional<compute::Stage> block_scan(const compute::Stage& stage, int64_t threads) {
  const std::optional<ScanBody> scan = scan_of(stage);
  std::optional<ScanStep> step = scan ? step_of(*scan) : std::nullopt;
  if (!step) return std::nullopt;
  compute::Stage made = stage;
  made.body = {BlockScan(*scan, *std::move(step), threads).body()};
  return made;
}

int64_t scanned_row(const compute::Stage& stage) {
  const std::optional<ScanBody> scan = scan_of(stage);
  const std::optional<ScanStep> step = scan ? step_of(*scan) : std::nullopt;
  if (!step) return 0;
  const ir::Linear last = ir::linearize(step->write->indices.back());
  return std::abs(last.coefficient(scan->loop->var)) == 1 ? scan->loop->extent->int_value : 0;
}

}  // namespace hone::schedule
