// graph/loop_body.h - a LoopBody is the graph that a hone.Loop repeats, and says when the loop
// ends. It runs as long as its condition is true and its number of turns is not reached, which may
// both be known at run time only. An If is made of loops of at most one turn.
//
// The node's operands are the number of turns (i64 [], may be missing), the values that are carried
// from turn to turn, of which the first one is the condition if there is one, and then captured
// values of the enclosing graph. Its results are the carried values after the last turn, then the
// rows of all turns stacked along a new first dimension, then the number of turns (i64 [1]).
//
// Operands are results of hone.Hold that nothing else reads, and results are read by hone.Hold
// only: so each has a dense buffer of its own, and a carried result takes the place of its operand
// (graph/tasks.h). A carried operand may also be hone.Blank, or the result of another loop.
#pragma once

#include <map>
#include <span>

#include "hone/graph/graph.h"

namespace hone::graph {

struct LoopBody {
  // Its inputs are the number of the turn (i64 []), the carried values and the captured ones. Its
  // outputs are the carried values for the next turn, then the rows.
  Graph graph;
  size_t carried = 0;
  std::vector<bool> reversed;  // per row: the rows of later turns come first
  bool conditional = false;    // the first carried value is a condition (bool [])
  // The loop ends after so many turns. If `beyond` is not empty, a run that wants more of them
  // fails with this message.
  int64_t most = 0;
  std::string beyond;
  // The first carried value that is no condition is two shapes, one behind the other, which the
  // message names.
  bool names_shapes = false;
  double expected_turns = 1;  // for costs
  // In a graph of ranges: the parts of each output. Carried values have those of their operands.
  // The last input is then the sizes of the run (graph/size_form.h).
  std::vector<ShapeParts> parts;
  // By constants of the body: those of the enclosing graph that they were captured from.
  std::map<ValueId, ValueId> captured_constants;

  // Returns which operand of the node has the shapes that the message names.
  [[nodiscard]] size_t shapes_operand() const { return conditional ? 2 : 1; }
  [[nodiscard]] size_t rows() const { return graph.outputs.size() - carried; }
  // The shape of a stacked result.
  [[nodiscard]] Shape stacked_shape(size_t row) const {
    Shape shape = graph.value(graph.outputs[carried + row]).shape;
    shape.insert(shape.begin(), most);
    return shape;
  }
};

// Returns the message of a run that a loop ends, with the two shapes that it names, if any, which
// stand one behind the other.
[[nodiscard]] std::string fault_message(const std::string& beyond, std::span<const int64_t> shapes);

// Returns whether two loops are one at two sizes: they carry as much, end alike, and their bodies
// have as many values. Loops inside of them may differ.
[[nodiscard]] bool same_kind(const LoopBody& a, const LoopBody& b);
// Likewise, and so are all loops inside of them.
[[nodiscard]] bool same_kind_inside(const LoopBody& a, const LoopBody& b);

}  // namespace hone::graph
