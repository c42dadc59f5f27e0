#include "hone/cost/inputs/program_graph.h"

#include <algorithm>
#include <numeric>

#include "hone/analysis/body_nests.h"
#include "hone/cost/inputs/input_parts.h"

namespace hone::cost {
namespace {

using analysis::Nest;
using analysis::NestAccess;
using schedule::Annotation;

constexpr size_t kSlots = 4;  // buffers of a context vector

// What a loop's statements do with one buffer while the loop runs once.
struct Touch {
  const NestAccess* access;
  double elements = 0, bytes = 0;  // that are touched
  double times = 0;                // how often elements are read or written
  double stride = 0;
  bool still = false;  // the loop does not move it
};

struct Context {
  double statements = 0, iterations = 0, useful = 1;
  compute::OpCounts ops;
  std::vector<Touch> touches;  // by bytes, the most first
};

// Statements that read the same buffer touch what the one touches that touches most.
void add_touch(std::vector<Touch>& touches, const Touch& touch) {
  for (Touch& known : touches) {
    if (known.access->buffer != touch.access->buffer || known.access->write != touch.access->write)
      continue;
    const double times = known.times + touch.times;
    if (touch.bytes > known.bytes) known = touch;
    known.times = times;
    return;
  }
  touches.push_back(touch);
}

// Of the loops from `first` on; `own`: there is a loop at that place, else it is the root.
void add_statement(Context& context, const Nest& nest, size_t first, bool own) {
  const double iterations = nest.iterations(first);
  context.statements += 1;
  context.iterations = std::max(context.iterations, iterations);
  context.useful = std::min(context.useful, nest.useful);
  compute::accumulate(context.ops, nest.ops, iterations * nest.useful);
  for (const NestAccess& access : nest.accesses) {
    Touch touch{&access, access.footprint(nest.loops, first)};
    touch.bytes = touch.elements * access.element_bytes;
    touch.times = iterations * nest.useful * access.reads;
    if (own) {
      touch.stride = static_cast<double>(std::abs(access.stride(first)));
      touch.still = !access.moves_with(first);
    }
    add_touch(context.touches, touch);
  }
}

Context context_of(const ProgramGraph& graph, const GraphLoop* loop) {
  Context context;
  if (loop == nullptr) {
    for (const Nest& nest : graph.nests) add_statement(context, nest, 0, false);
  } else {
    for (const auto& [nest, place] : loop->statements)
      add_statement(context, graph.nests[nest], place, true);
  }
  std::stable_sort(context.touches.begin(), context.touches.end(),
                   [](const Touch& a, const Touch& b) { return a.bytes > b.bytes; });
  return context;
}

void write_loop(const GraphLoop* loop, double inside, RowWriter& out) {
  const Annotation how = loop ? loop->loop.annotation : Annotation::kNone;
  out.flag("parallel", how == Annotation::kParallel);
  out.flag("vector", how == Annotation::kVectorize);
  out.flag("unrolled", how == Annotation::kUnroll);
  out.flag("serial", loop && how == Annotation::kNone);
  out.flag("spatial", loop && !loop->loop.reduce);
  out.flag("reduce", loop && loop->loop.reduce);
  out.flag("body", loop && loop->body);
  out.flag("innermost", loop && loop->innermost);
  out.count("extent", loop ? static_cast<double>(loop->loop.extent) : 0);
  out.plain("depth", loop ? loop->depth + 1 : 0);
  out.count("outside", loop ? loop->outside : 0);
  out.count("inside", inside);
}

void write_touch(size_t slot, const Touch* touch, RowWriter& out) {
  const auto name = [&](const char* what) { return out.name("buffer{}.{}", slot, what); };
  out.flag(name("read"), touch && !touch->access->write);
  out.flag(name("write"), touch && touch->access->write);
  out.flag(name("constant"), touch && touch->access->constant);
  out.flag(name("local"), touch && touch->access->scope != ir::Scope::kGlobal);
  out.count(name("elements"), touch ? touch->elements : 0);
  out.count(name("bytes"), touch ? touch->bytes : 0);
  out.count(name("stride"), touch ? touch->stride : 0);
  out.count(name("reuse"), touch ? touch->times / std::max(touch->elements, 1.0) : 0);
  out.flag(name("still"), touch && touch->still);
}

void write_context(const Context& context, RowWriter& out) {
  out.count("statements", context.statements);
  out.plain("useful", context.statements > 0 ? context.useful : 0);
  out.count("fma", context.ops.fma);
  out.count("add", context.ops.add);
  out.count("mul", context.ops.mul);
  out.count("div", context.ops.div);
  out.count("compare", context.ops.compare);
  out.count("select", context.ops.select);
  out.count("math", context.ops.math);
  out.count("integer", context.ops.integer);
  double bytes = 0;
  for (const Touch& touch : context.touches) bytes += touch.bytes;
  out.count("bytes", bytes);
  for (size_t slot = 0; slot < kSlots; ++slot)
    write_touch(slot, slot < context.touches.size() ? &context.touches[slot] : nullptr, out);
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const schedule::State& state) : state_(state) {}

  ProgramGraph build(std::vector<Nest> nests) && {
    graph_.nests = std::move(nests);
    for (size_t n = 0; n < graph_.nests.size(); ++n) add(n);
    return std::move(graph_);
  }

 private:
  void add(size_t n) {
    const Nest& nest = graph_.nests[n];
    int around = -1;
    for (size_t place = 0; place < nest.loops.size(); ++place) {
      if (nest.loops[place].extent == 1) continue;
      around = find_or_add(around, nest.loops[place]);
      GraphLoop& loop = graph_.loops[static_cast<size_t>(around)];
      loop.loop.reduce = loop.loop.reduce || nest.loops[place].reduce;
      loop.statements.emplace_back(n, place);
    }
  }

  int find_or_add(int parent, const analysis::NestLoop& own) {
    std::vector<GraphLoop>& loops = graph_.loops;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].parent == parent && loops[i].loop.stage == own.stage &&
          loops[i].loop.loop == own.loop && loops[i].loop.extent == own.extent)
        return static_cast<int>(i);
    }
    GraphLoop made{.parent = parent, .loop = own};
    made.body = own.loop >= std::ssize(state_.stages[static_cast<size_t>(own.stage)].loops);
    if (parent >= 0) {
      GraphLoop& outer = loops[static_cast<size_t>(parent)];
      outer.innermost = false;
      made.depth = outer.depth + 1;
      made.outside = outer.outside * static_cast<double>(outer.loop.extent);
    }
    loops.push_back(std::move(made));
    return static_cast<int>(loops.size()) - 1;
  }

  const schedule::State& state_;
  ProgramGraph graph_;
};

// Which loops of a graph are nodes of the plain form, in order.
std::vector<size_t> kept_loops(const ProgramGraph& graph) {
  constexpr size_t kMost = static_cast<size_t>((kMaxGraphNodes - 1) / 2);
  std::vector<size_t> all(graph.loops.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= kMost) return all;
  std::vector<std::vector<size_t>> loops_of(graph.nests.size());
  for (const size_t i : all) {
    for (const auto& [nest, place] : graph.loops[i].statements) loops_of[nest].push_back(i);
  }
  std::vector<size_t> heaviest(graph.nests.size());
  std::iota(heaviest.begin(), heaviest.end(), size_t{0});
  std::stable_sort(heaviest.begin(), heaviest.end(), [&](size_t a, size_t b) {
    return statement_weight(graph.nests[a]) > statement_weight(graph.nests[b]);
  });
  std::vector<size_t> kept;
  for (const size_t nest : heaviest) {
    std::vector<size_t> more;
    for (const size_t i : loops_of[nest]) {
      if (std::find(kept.begin(), kept.end(), i) == kept.end()) more.push_back(i);
    }
    if (kept.size() + more.size() <= kMost) kept.insert(kept.end(), more.begin(), more.end());
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

ProgramGraph build_graph(std::span<const Nest> nests, const schedule::State& state,
                         const schedule::Bounds& bounds) {
  std::vector<Nest> all(nests.begin(), nests.end());
  std::vector<Nest> bodies = analysis::build_body_nests(state, bounds);
  std::move(bodies.begin(), bodies.end(), std::back_inserter(all));
  std::stable_sort(all.begin(), all.end(),
                   [](const Nest& a, const Nest& b) { return a.stage < b.stage; });
  return GraphBuilder(state).build(std::move(all));
}

void write_graph_node(const ProgramGraph* graph, GraphNode kind, const GraphLoop* loop,
                      RowWriter& out) {
  out.flag("root", kind == GraphNode::kRoot);
  out.flag("for", kind == GraphNode::kFor);
  out.flag("interval", kind == GraphNode::kInterval);
  Context context;
  if (graph != nullptr) context = context_of(*graph, loop);
  write_loop(loop, context.iterations, out);
  if (kind != GraphNode::kFor || out.names_only()) write_context(context, out);
}

const std::vector<std::string>& graph_node_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    RowWriter writer(names);
    write_graph_node(nullptr, GraphNode::kRoot, nullptr, writer);
    return names;
  }();
  return kNames;
}

void write_graph(const ProgramGraph& graph, float* nodes, float* edges, float* mask) {
  const std::vector<size_t> kept = kept_loops(graph);
  const size_t count = 1 + 2 * kept.size(), width = graph_node_names().size();
  std::vector<size_t> node_of(graph.loops.size());  // the loop's `for` node
  for (size_t k = 0; k < kept.size(); ++k) node_of[kept[k]] = 1 + 2 * k;
  if (mask) std::fill_n(mask, count, 1.0F);
  const auto write_node = [&](size_t node, GraphNode kind, const GraphLoop* loop) {
    RowWriter writer(std::span(nodes + node * width, width));
    write_graph_node(&graph, kind, loop, writer);
  };
  if (nodes) write_node(0, GraphNode::kRoot, nullptr);
  std::vector<std::pair<size_t, size_t>> joined;
  for (const size_t i : kept) {
    const GraphLoop& loop = graph.loops[i];
    if (nodes) write_node(node_of[i], GraphNode::kFor, &loop);
    if (nodes) write_node(node_of[i] + 1, GraphNode::kInterval, &loop);
    const size_t around = loop.parent < 0 ? 0 : node_of[static_cast<size_t>(loop.parent)];
    joined.emplace_back(around, node_of[i]);
    joined.emplace_back(node_of[i], node_of[i] + 1);
  }
  if (edges) write_edges(joined, count, static_cast<size_t>(kMaxGraphNodes), edges);
}

void write_edges(std::span<const std::pair<size_t, size_t>> joined, size_t nodes, size_t stride,
                 float* edges) {
  std::vector<double> degree(nodes, 1);
  for (const auto& [a, b] : joined) degree[a] += 1, degree[b] += 1;
  for (size_t i = 0; i < nodes; ++i) edges[i * stride + i] = static_cast<float>(1 / degree[i]);
  for (const auto& [a, b] : joined) {
    const auto weight = static_cast<float>(1 / std::sqrt(degree[a] * degree[b]));
    edges[a * stride + b] = edges[b * stride + a] = weight;
  }
}

}  // namespace hone::cost
