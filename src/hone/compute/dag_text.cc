#include "hone/compute/dag_text.h"

#include <algorithm>

#include "hone/compute/affine.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"

namespace hone::compute {
namespace {

using ir::BufferPtr;
using ir::Role;
using ir::Stmt;
using ir::StmtKind;

constexpr std::string_view kMerge = "merge", kWrites = "writes";
constexpr std::string_view kPlainSums = "!";  // behind the axes of such a stage

std::string or_dash(const std::string& name) { return name.empty() ? "-" : name; }

// ---- writing ----

class Writer {
 public:
  explicit Writer(const Dag& dag) : dag_(dag) {}

  ir::Program program() {
    ir::Program program;
    program.params = dag_.params;
    for (const Stage& stage : dag_.stages) program.phases.push_back({phase(stage), false});
    for (const BufferPtr& buffer : others_)
      program.params.push_back({buffer, buffer->values.empty() ? Role::kWorkspace : Role::kPacked});
    program.name = "dag";  // and what the buffers are called, were it a reserved word
    for (const ir::Param& param : program.params) program.name += " " + or_dash(param.buffer->name);
    return program;
  }

 private:
  Stmt phase(const Stage& stage) {
    std::string label = or_dash(stage.name) + " " + or_dash(stage.op);
    for (const Axis& axis : stage.axes) label += " " + axis.var->name;
    if (!stage.reduce.empty()) label += " /";
    for (const Axis& axis : stage.reduce) label += " " + axis.var->name;
    if (stage.plain_sums) label += fmt::format(" {}", kPlainSums);
    std::vector<Stmt> inner = stage.is_extern() ? stage.body : stores(stage);
    if (stage.where) inner = {ir::make_if(stage.where, std::move(inner))};
    const std::vector<Axis> axes = stage_axes(stage);
    for (size_t i = axes.size(); i-- > 0;) {
      ir::Expr extent = ir::constant(axes[i].extent);
      if (stage.until && i + 1 == axes.size()) extent = ir::min(extent, stage.until);
      inner = {ir::make_for(axes[i].var, ir::constant(0), extent, ir::ForKind::kSerial,
                            std::move(inner))};
    }
    std::vector<Stmt> body = {ir::make_extern(std::move(label), stage.extern_reads)};
    for (const BufferPtr& buffer : stage.extern_reads) see(buffer);
    if (stage.is_extern()) {
      std::vector<BufferPtr> written;
      for (const Output& output : stage.outputs) written.push_back(output.buffer);
      for (const BufferPtr& buffer : written) see(buffer);
      body.push_back(ir::make_extern(std::string(kWrites), std::move(written)));
    }
    body.insert(body.end(), inner.begin(), inner.end());
    return ir::make_block(std::move(body));
  }

  std::vector<Stmt> stores(const Stage& stage) {
    std::vector<Stmt> list;
    const auto store = [&](const Output& output, const ir::Expr& value) {
      see(output.buffer);
      see_loads(value);
      list.push_back(ir::make_store(output.buffer, output.write, value));
    };
    see_loads(stage.where);
    for (const Output& output : stage.outputs) {
      store(output, output.value);
      if (!stage.reduce.empty()) store(output, output.identity);
      if (!output.merge) continue;
      see(output.other);
      list.push_back(ir::make_extern(std::string(kMerge), {output.other}));
      store(output, output.merge);
    }
    return list;
  }

  void see(const BufferPtr& buffer) {
    const bool known = dag_.find_param(buffer) ||
                       std::find(others_.begin(), others_.end(), buffer) != others_.end();
    if (!known) others_.push_back(buffer);
  }
  void see_loads(const ir::Expr& value) {
    if (!value) return;
    ir::visit(value, [&](const ir::Expr& e) {
      if (e->op == ir::Op::kLoad) see(e->buffer);
    });
  }

  const Dag& dag_;
  std::vector<BufferPtr> others_;  // in order of use
};

// ---- reading ----

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

std::vector<Stmt> statements(const Stmt& s) {
  return s->kind == StmtKind::kBlock ? s->body : std::vector<Stmt>{s};
}

// Gives buffers their names again.
class Renamer {
 public:
  BufferPtr add(const BufferPtr& buffer, const std::string& name) {
    if (buffer->name == name) return buffer;
    ir::Buffer copy = *buffer;
    copy.name = name;
    renamed_.emplace_back(buffer, std::make_shared<const ir::Buffer>(std::move(copy)));
    return renamed_.back().second;
  }
  Stmt apply(const Stmt& s) const {
    return s && !renamed_.empty() ? ir::replace_buffers(s, renamed_) : s;
  }

 private:
  ir::BufferMap renamed_;
};

bool is_extern_of(const Stmt& s, std::string_view name) {
  return s->kind == StmtKind::kExtern && s->name == name;
}

Status read_stores(const std::vector<Stmt>& list, Stage& stage) {
  for (size_t i = 0; i < list.size();) {
    const auto next_store = [&](const BufferPtr& buffer, ir::Expr& value) -> Status {
      if (i >= list.size() || list[i]->kind != StmtKind::kStore || list[i]->buffer != buffer)
        return invalid("stage {}: expected a store to {}", stage.name, buffer->name);
      value = list[i++]->value;
      return ok_status();
    };
    if (list[i]->kind != StmtKind::kStore) return invalid("stage {}: expected a store", stage.name);
    Output output;
    output.buffer = list[i]->buffer;
    output.write = list[i]->indices;
    HONE_RETURN_IF_ERROR(next_store(output.buffer, output.value));
    if (!stage.reduce.empty()) HONE_RETURN_IF_ERROR(next_store(output.buffer, output.identity));
    if (i < list.size() && is_extern_of(list[i], kMerge) && list[i]->buffers.size() == 1) {
      output.other = list[i++]->buffers[0];
      HONE_RETURN_IF_ERROR(next_store(output.buffer, output.merge));
    }
    stage.outputs.push_back(std::move(output));
  }
  return ok_status();
}

Result<Stage> read_stage(const Stmt& phase) {
  std::vector<Stmt> list = phase ? statements(phase) : std::vector<Stmt>();
  if (list.empty() || list[0]->kind != StmtKind::kExtern)
    return invalid("a phase does not begin with the names of a stage");
  const std::vector<std::string> names = words(list[0]->name);
  if (names.size() < 2) return invalid("a stage needs a name and an operator");
  Stage stage;
  if (names[0] != "-") stage.name = names[0];
  if (names[1] != "-") stage.op = names[1];
  stage.extern_reads = list[0]->buffers;
  list.erase(list.begin());
  const bool is_extern = !list.empty() && is_extern_of(list[0], kWrites);
  if (is_extern) {
    for (const BufferPtr& buffer : list[0]->buffers) {
      stage.outputs.emplace_back();
      stage.outputs.back().buffer = buffer;
    }
    list.erase(list.begin());
  }
  ir::VarMap roles;  // the parser's variables to those with the stage's names
  std::vector<Axis>* axes = &stage.axes;
  for (size_t i = 2; i < names.size(); ++i) {
    if (names[i] == "/") {
      axes = &stage.reduce;
      continue;
    }
    if (names[i] == kPlainSums) {
      stage.plain_sums = true;
      continue;
    }
    const bool is_loop = list.size() == 1 && list[0]->kind == StmtKind::kFor;
    ir::Expr extent = is_loop ? list[0]->extent : nullptr;
    if (extent && extent->op == ir::Op::kMin && axes == &stage.reduce) {
      stage.until = ir::substitute(extent->args[1], roles);
      extent = extent->args[0];
    }
    if (!extent || !ir::is_const_int(extent))
      return invalid("stage {}: there is no loop for axis {}", stage.name, names[i]);
    axes->push_back({ir::make_var(names[i]), extent->int_value});
    roles.emplace_back(list[0]->var, ir::variable(axes->back().var));
    list = list[0]->body;
    if (list.size() == 1) list = statements(list[0]);
  }
  for (Stmt& s : list) s = ir::substitute(s, roles);
  if (is_extern) {
    stage.body = std::move(list);
    return stage;
  }
  if (list.size() == 1 && list[0]->kind == StmtKind::kIf) {
    stage.where = list[0]->condition;
    list = list[0]->body;
    if (list.size() == 1) list = statements(list[0]);
  }
  HONE_RETURN_IF_ERROR(read_stores(list, stage));
  return stage;
}

}  // namespace

std::string to_text(const Dag& dag) { return ir::print(Writer(dag).program()); }

Result<Dag> parse_dag(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ir::parse_program(text));
  const std::vector<std::string> names = words(program.name);
  if (names.size() != program.params.size() + 1)
    return invalid("the program's name has {} words, expected dag and the names of {} buffers",
                   names.size(), program.params.size());
  Dag dag;
  Renamer renamer;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Param& param = program.params[i];
    const std::string name = names[i + 1] == "-" ? "" : names[i + 1];
    const BufferPtr buffer = renamer.add(param.buffer, name);
    const bool inner = param.role == Role::kWorkspace || param.role == Role::kPacked;
    if (!inner) dag.params.push_back({buffer, param.role, param.zeros});
  }
  for (const ir::Phase& phase : program.phases) {
    HONE_ASSIGN_OR_RETURN(Stage stage, read_stage(renamer.apply(phase.body)));
    dag.stages.push_back(std::move(stage));
  }
  HONE_RETURN_IF_ERROR(verify(dag));
  return dag;
}

}  // namespace hone::compute
