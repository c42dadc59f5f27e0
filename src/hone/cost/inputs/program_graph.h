// cost/inputs/program_graph.h - the loops of a scheduled program as a graph, after MetaTune (Ryu
// and Sung 2021, section 3.1): a root, a `for` node for each loop, and beside each of these an
// `interval` node with the loop's context vector. Edges are those of the program's syntax tree: the
// root with the outermost loops, a loop with the loops directly inside it, a loop with its
// interval.
//
// Every task has one: stages are read as analysis::Nest, bodies of statements as
// analysis::build_body_nests. Loops that statements share are one node. Loops of one iteration are
// no loops in code, and no nodes.
//
// This file decides what the paper leaves open. A `for` node has what is known of the loop alone
// (the paper's has no features), an interval that and its context: arithmetic and, of the buffers
// of which one run of the loop touches most, elements, bytes, stride and reuse (TVM's loop context
// vectors, Chen et al. 2018b). The root has the context of the whole program.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "hone/analysis/nest.h"
#include "hone/base/status.h"
#include "hone/cost/inputs/row_writer.h"
#include "hone/schedule/state.h"

namespace hone::cost {

struct GraphLoop {
  int parent = -1;          // loop around it; -1: it is an outermost one
  analysis::NestLoop loop;  // its `reduce` is true if it is so for some statement
  bool body = false;        // a loop of a body of statements, not of the schedule
  int depth = 0;            // number of loops around it
  double outside = 1;       // iterations of all loops around it
  bool innermost = true;
  // The statements inside: index of the nest, and the place of the loop in it.
  std::vector<std::pair<size_t, size_t>> statements;
};

struct ProgramGraph {
  std::vector<analysis::Nest> nests;  // in the order of the program
  std::vector<GraphLoop> loops;       // outer ones before inner ones
};
// Builds the graph. `nests` are those of build_nests() for that state.
[[nodiscard]] ProgramGraph build_graph(std::span<const analysis::Nest> nests,
                                       const schedule::State& state,
                                       const schedule::Bounds& bounds);

// The features of a node. `loop` is null for the root. Without a graph only names are written.
enum class GraphNode : uint8_t { kRoot, kFor, kInterval };
void write_graph_node(const ProgramGraph* graph, GraphNode kind, const GraphLoop* loop,
                      RowWriter& out);
[[nodiscard]] const std::vector<std::string>& graph_node_names();

// ---- the plain form: any graph, up to a number of nodes ----

// Nodes of the plain form: the root, then each loop's `for` node and its interval. A larger graph
// is written without its lightest statements and the loops that no other statement has; the root
// still says what the whole program touches.
inline constexpr int64_t kMaxGraphNodes = 97;
// Writes [node, feature]; the weights of edges [node, node], which are D^-1/2 (A + I) D^-1/2 with
// the degrees D of A + I (Kipf and Welling 2017), A symmetric; and 1 for each node that there is.
// Rows are zero before; any pointer may be null.
void write_graph(const ProgramGraph& graph, float* nodes, float* edges, float* mask);

// Writes D^-1/2 (A + I) D^-1/2 of an undirected graph into the first `nodes` rows and columns of a
// matrix whose rows are `stride` apart. `joined` are its edges, each once.
void write_edges(std::span<const std::pair<size_t, size_t>> joined, size_t nodes, size_t stride,
                 float* edges);

// ---- the super-graph: one template for all tasks (section 3.2) ----

// The template has places for the loops of stages by their role, and of a role for several stages.
// A loop's place is its rank among the loops of its stage: those over points and those over terms
// (or of a body) apart, from the innermost on; of a body from the outermost on.
struct TemplateRole {
  std::string_view name;
  int stages, spatial, reduce;
};
// Roles: "main", the reduction with the most arithmetic; "sum", other reductions; "root", stages
// that others may be computed inside of, which is what the outer loops of a tiled nest belong to;
// "point", other stages; "body", stages with a body of statements, whose own loops count as
// reductions.
[[nodiscard]] std::span<const TemplateRole> template_roles();
[[nodiscard]] int64_t template_loops();  // number of places of all roles
// Returns the place of each loop of a graph, no two the same. If the template has too few places,
// the error (Code::kUnsupported) says how many it has and what was found.
[[nodiscard]] Result<std::vector<int>> map_to_template(const ProgramGraph& graph,
                                                       const schedule::State& state);
// Writes [1 + place, feature], the root and then the intervals of loops at their places, and 1 for
// each of these that there is.
[[nodiscard]] Status write_template(const ProgramGraph& graph, const schedule::State& state,
                                    float* nodes, float* mask);
// Returns the weights of the edges of the template, [node, node], as write_graph does. Its nodes
// are the root, the intervals of all places, then the `for` nodes of all places. Its edges are
// those between the root and each `for` node (any of them may be an outermost loop), those between
// the `for` nodes of neighbouring ranks of a stage, and those between a `for` node and its
// interval.
[[nodiscard]] const std::vector<float>& template_edges();

}  // namespace hone::cost
