// graph/ops/loop_builder.h - builds a hone.Loop (graph/loop_body.h) for the node that is expanded:
// the graph that it repeats, and in the enclosing graph the node itself with the copies around it.
//
//   LoopBuilder loop(c, most);
//   const ValueId state = loop.carry(initial);
//   loop.inline_body(body, {loop.turn(), state});       // or nodes by loop.body()
//   loop.finish(...);
#pragma once

#include <optional>

#include "hone/graph/aggregates.h"
#include "hone/graph/expand.h"
#include "hone/graph/loop_body.h"

namespace hone::graph {

// When a loop ends, apart from its condition.
struct LoopEnd {
  ValueId turns = kNoValue;   // one integer, a value of the enclosing graph
  std::string beyond;         // LoopBody::beyond
  bool names_shapes = false;  // LoopBody::names_shapes
  double expected_turns = 1;
  bool holds_results = true;  // if not, they are for LoopBuilder::take()
};

struct LoopRow {
  ValueId value;  // in the body
  bool reversed = false;
};

// Values of the enclosing graph.
struct LoopResults {
  std::vector<ValueId> carried, stacked;
  ValueId turns = kNoValue;  // i64 [1]
};

class LoopBuilder {
 public:
  // The loop takes at most `most` turns.
  LoopBuilder(ExpandContext& around, int64_t most);

  // Calls build() with a context whose nodes are added to `c` if there is no error; else nothing is
  // left of them.
  template <typename Build>
  [[nodiscard]] static Status build_apart(ExpandContext& c, const Build& build) {
    std::vector<Node> nodes;
    const size_t warnings = c.graph().warnings.size();
    Status status = [&]() -> Status {
      const NodesBefore before(c.graph(), c.nodes());
      ExpandContext apart(c.graph(), c.node(), nodes);
      HONE_RETURN_IF_ERROR(build(apart));
      return apart.status();
    }();
    if (status.ok())
      add_nodes(c, std::move(nodes));
    else
      c.graph().warnings.resize(warnings);
    return status;
  }
  // Returns copies of values, or these to be taken. A run in which `fails` (a bool) is true ends
  // with the message `end.beyond`, unless the results of the node are not used. Where runs cannot
  // repeat steps (Graph::repeats_steps), nothing is checked, and a warning says so.
  [[nodiscard]] static Result<std::vector<ValueId>> add_fault(ExpandContext& c, ValueId fails,
                                                              const LoopEnd& end,
                                                              const std::vector<ValueId>& values);
  // Adds nodes that another context has built for the same node.
  static void add_nodes(ExpandContext& c, std::vector<Node> nodes);

  // Builds nodes of the body. Its operands and results are values of the body.
  [[nodiscard]] ExpandContext& body() { return inner_; }
  [[nodiscard]] ValueId turn() const { return turn_; }  // i64 []
  void limit_turns(int64_t most) { loop_->most = most; }
  // Returns the value in the body that has these elements in the first turn. It must have some.
  ValueId carry(ValueId initial);
  // Likewise, for a value that nothing else reads: the result of another loop that is not held, or
  // hone.Blank. The loop writes over it.
  ValueId take(ValueId initial);
  // Returns a value of the enclosing graph in the body, with its extents.
  ValueId capture(ValueId outer);
  // Adds the nodes of a graph of the node that is expanded, and returns its outputs. An error if
  // values are sequences.
  [[nodiscard]] Result<std::vector<ValueId>> inline_body(const SubgraphBody& body,
                                                         const std::vector<ValueId>& arguments);
  // Adds the loop to the enclosing graph. `next` are what the carried values are in the next turn,
  // in the order of carry(); `go_on` (a bool, initially `go`) says whether there is one, unless it
  // is missing. It is an error if a carried value would change its type or shape.
  [[nodiscard]] Result<LoopResults> finish(const LoopEnd& end, ValueId go, ValueId go_on,
                                           std::vector<ValueId> next,
                                           const std::vector<LoopRow>& rows);

 private:
  [[nodiscard]] Status check_carried(const std::vector<ValueId>& next) const;
  [[nodiscard]] Status check_rows(const std::vector<LoopRow>& rows) const;
  void leave_out_unused(ValueId& go_or_turns);
  ValueId inner_value(ValueId outer);
  ValueId capture_if_read(ValueId outer);
  void capture_slice(ValueId outer, ValueId inner);
  // Returns a sequence or optional value of the enclosing graph, of values of the body; nullopt if
  // it holds others than tensors.
  std::optional<Aggregate> capture_parts(Aggregate list);
  void set_graph(std::vector<ValueId> outputs);
  std::vector<ValueId> add_loop(std::vector<ValueId> operands);

  struct Pair {
    ValueId outer, inner;
    bool taken = false;
    bool if_read = false;  // captured only if a node of the body reads it
  };
  ExpandContext& around_;
  std::shared_ptr<LoopBody> loop_;
  Node node_;  // the node that is expanded, with operands of the body
  std::vector<Node> nodes_;
  ExpandContext inner_;
  ValueId turn_ = kNoValue;
  std::vector<Pair> carried_, captured_;
};

}  // namespace hone::graph
