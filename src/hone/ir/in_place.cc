#include "hone/ir/in_place.h"

#include <algorithm>
#include <map>
#include <set>

#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// The phases' uses of a buffer. The map is looked up by pointer and never iterated.
struct Uses {
  std::set<const Buffer*> read;  // elsewhere than at the place of the store that it is for
  std::set<const Buffer*> written;
  std::set<const Buffer*> opaque;  // given to extern functions
  // Stores to a buffer, and those among them that read another buffer at the same place.
  std::map<const Buffer*, int> stores;
  std::map<std::pair<const Buffer*, const Buffer*>, int> matched;  // input, output
  std::map<const Buffer*, std::set<const Buffer*>> read_for;       // at the same place
};

bool same_place(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return equal(x, y); });
}

// Buffers that `expr` loads at the place of `store` go to `here`, others to Uses::read.
void collect(const Expr& expr, const StmtNode* store, std::set<const Buffer*>& here, Uses& uses) {
  if (!expr) return;
  if (expr->buffer) {
    const bool same = store != nullptr && expr->buffer->shape == store->buffer->shape &&
                      expr->buffer->dtype == store->buffer->dtype &&
                      same_place(expr->args, store->indices);
    if (same)
      here.insert(expr->buffer.get());
    else
      uses.read.insert(expr->buffer.get());
    for (const Expr& index : expr->args) collect(index, nullptr, here, uses);
    return;
  }
  for (const Expr& arg : expr->args) collect(arg, store, here, uses);
}

void collect(const StmtNode& stmt, Uses& uses) {
  std::set<const Buffer*> here;
  for (const Expr& expr : {stmt.min, stmt.extent, stmt.condition})
    collect(expr, nullptr, here, uses);
  for (const Expr& index : stmt.indices) collect(index, nullptr, here, uses);
  if (stmt.kind == StmtKind::kStore) {
    const Buffer* output = stmt.buffer.get();
    collect(stmt.value, &stmt, here, uses);
    uses.written.insert(output);
    ++uses.stores[output];
    for (const Buffer* input : here) {
      ++uses.matched[{input, output}];
      uses.read_for[input].insert(output);
    }
  }
  if (stmt.kind != StmtKind::kStore) collect(stmt.value, nullptr, here, uses);
  for (size_t b = 0; b < stmt.boxes.size(); ++b) {
    const Box& box = stmt.boxes[b];
    for (const Expr& index : box.indices) collect(index, nullptr, here, uses);
    uses.read.insert(box.buffer.get());
    if (b == 0) uses.written.insert(box.buffer.get());
  }
  for (const BufferPtr& buffer : stmt.buffers) uses.opaque.insert(buffer.get());
}

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Program& program) {
  Uses uses;
  for (const Phase& phase : program.phases) {
    if (!phase.prepare) for_each_stmt(*phase.body, [&](const StmtNode& s) { collect(s, uses); });
  }
  std::vector<InPlacePair> pairs;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const Buffer* input = program.params[i].buffer.get();
    if (program.params[i].role != Role::kInput || uses.read.contains(input) ||
        uses.written.contains(input) || uses.opaque.contains(input) ||
        uses.read_for[input].size() != 1)
      continue;
    const Buffer* output = *uses.read_for[input].begin();
    if (uses.read.contains(output) || uses.read_for.contains(output) ||
        uses.opaque.contains(output) || uses.matched[{input, output}] != uses.stores[output])
      continue;
    for (size_t o = 0; o < program.params.size(); ++o) {
      if (program.params[o].role == Role::kOutput && program.params[o].buffer.get() == output)
        pairs.push_back({i, o});
    }
  }
  return pairs;
}

}  // namespace hone::ir
