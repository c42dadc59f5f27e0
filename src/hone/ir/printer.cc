#include "hone/ir/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "hone/ir/lexer.h"

namespace hone::ir {
namespace {

constexpr std::string_view kWords[] = {
    "program",     "input",  "constant", "packed",     "workspace", "output",   "phase",
    "prepare",     "for",    "parallel", "vectorized", "unrolled",  "in",       "peel",
    "if",          "alloc",  "global",   "thread",     "stack",     "register", "prefetch",
    "prefetch_l2", "extern", "true",     "false",      "inf",       "nan",      "shared",
    "fragment",    "signal", "warp",     "lane",       "barrier",   "commit",   "wait",
    "matrix",      "copy",   "arrive",   "await",      "roles",     "async",    "transposed"};

// An identifier as close to a name as possible.
std::string as_identifier(std::string_view name) {
  std::string id;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool joins = c == '.' && !id.empty() && i + 1 < name.size() &&
                       (is_letter(name[i + 1]) || is_digit(name[i + 1])) && id.back() != '.';
    id += is_letter(c) || is_digit(c) || joins ? c : '_';
  }
  if (id.empty() || !is_letter(id[0])) id.insert(0, "v");
  if (is_reserved(id)) id += '_';
  return id;
}

std::string quoted(std::string_view text) {
  if (is_identifier(text) && !is_reserved(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c < ' ' || c > '~') {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string real(double value, bool single) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text =
      single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Precedence of operators. An operand with a lower level gets parentheses.
enum Level { kOrLevel = 1, kAndLevel, kNotLevel, kCompareLevel, kAddLevel, kMulLevel, kPrimary };
struct Infix {
  std::string_view sign;
  Level level;
};
Infix infix(Op op) {
  switch (op) {
    case Op::kOr: return {"||", kOrLevel};
    case Op::kAnd: return {"&&", kAndLevel};
    case Op::kLt: return {"<", kCompareLevel};
    case Op::kLe: return {"<=", kCompareLevel};
    case Op::kEq: return {"==", kCompareLevel};
    case Op::kNe: return {"!=", kCompareLevel};
    case Op::kAdd: return {"+", kAddLevel};
    case Op::kSub: return {"-", kAddLevel};
    case Op::kMul: return {"*", kMulLevel};
    case Op::kDiv: return {"/", kMulLevel};
    case Op::kFloorDiv: return {"//", kMulLevel};
    case Op::kFloorMod: return {"%", kMulLevel};
    default: return {"", kPrimary};
  }
}

class Printer {
 public:
  std::string take() && { return std::move(out_); }

  void program(const Program& p) {
    put("program {} {{\n", quoted(p.name));
    for (const Param& param : p.params) {
      const Buffer& b = *param.buffer;
      put("  {} {}: {}", role_name(param.role), name(param.buffer.get(), b.name), type(b));
      if (!b.values.empty()) {
        put(" = {{");
        for (size_t i = 0; i < b.values.size(); ++i)
          put("{}{}", i ? ", " : "", real(b.values[i], true));
        put("}}");
      }
      if (!param.zeros.empty()) put(" zeros {{{}}}", fmt::join(param.zeros, ", "));
      put("\n");
    }
    for (const Phase& phase : p.phases) {
      put("  phase{} {{\n", phase.prepare ? " prepare" : "");
      if (phase.body) statement(*phase.body, 2);
      put("  }}\n");
    }
    put("}}\n");
  }

  void statement(const StmtNode& s, int depth) {
    if (s.kind == StmtKind::kBlock) return statements(s.body, depth);
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    switch (s.kind) {
      case StmtKind::kBlock: return;
      case StmtKind::kFor: {
        const bool plain = is_const_int(s.min) && is_const_int(s.extent) &&
                           s.extent->int_value >= 0 && s.min->int_value < (int64_t{1} << 60) &&
                           s.extent->int_value < (int64_t{1} << 60);
        put("{} {} in ", for_kind_name(s.for_kind), name(s.var.get(), s.var->name));
        expression(*s.min, kOrLevel);
        if (plain) {
          put("..{}", s.min->int_value + s.extent->int_value);
        } else {
          put("..+");
          expression(*s.extent, kPrimary);
        }
        put("{}", s.peel ? " peel" : "");
        return body(s, depth);
      }
      case StmtKind::kIf:
        put("if ");
        expression(*s.condition, kOrLevel);
        return body(s, depth);
      case StmtKind::kAlloc:
        put("alloc {} {}: {}", scope_name(s.buffer->scope), name(s.buffer.get(), s.buffer->name),
            type(*s.buffer));
        if (s.buffer->scope == Scope::kSignal) put(" arrivals {}", s.count);
        return body(s, depth);
      case StmtKind::kStore:
        put("{}", s.async ? "async " : "");
        access(s.buffer, s.indices);
        put(" = ");
        expression(*s.value, kOrLevel);
        break;
      case StmtKind::kPrefetch:
        put("{} ", s.cache == 2 ? "prefetch_l2" : "prefetch");
        access(s.buffer, s.indices);
        break;
      case StmtKind::kExtern:
        put("extern {}(", quoted(s.name));
        for (size_t i = 0; i < s.buffers.size(); ++i) {
          put("{}{}", i ? ", " : "", name(s.buffers[i].get(), s.buffers[i]->name));
        }
        put(")");
        break;
      case StmtKind::kRoles: return roles(s, depth);
      default: gpu_statement(s); break;
    }
    put("\n");
  }

  void roles(const StmtNode& s, int depth) {
    put("roles {{\n");
    for (size_t i = 0; i < s.body.size(); ++i) {
      out_.append(static_cast<size_t>(depth + 1) * 2, ' ');
      put("warp {} {{\n", s.warps[i]);
      statement(*s.body[i], depth + 2);
      out_.append(static_cast<size_t>(depth + 1) * 2, ' ');
      put("}}\n");
    }
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    put("}}\n");
  }

  void gpu_statement(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::kBarrier: return put("barrier{}", s.warp ? " warp" : "");
      case StmtKind::kCommit: return put("commit");
      case StmtKind::kWait: return put("wait {}", s.count);
      case StmtKind::kMatrix:
        put("{}matrix ", s.async ? "async " : "");
        for (size_t i = 0; i < s.boxes.size(); ++i) {
          put("{}", i == 0 ? "" : i == 1 ? " += " : " * ");
          box(s.boxes[i]);
        }
        return;
      case StmtKind::kBoxCopy:
        put("copy ");
        box(s.boxes[0]);
        put(" = ");
        box(s.boxes[1]);
        put(", ");
        return access(s.buffer, s.indices);
      case StmtKind::kArrive: put("arrive "); return access(s.buffer, s.indices);
      case StmtKind::kAwait:
        put("await ");
        access(s.buffer, s.indices);
        put(", ");
        return expression(*s.value, kOrLevel);
      default: return;
    }
  }

  void expression(const ExprNode& e, Level around) {
    switch (e.op) {
      case Op::kInt:
        if (e.type == DType::kBool) return put("{}", e.int_value ? "true" : "false");
        put("{}", e.int_value);
        return suffix(e.type, DType::kI64);
      case Op::kFloat:
        put("{}", real(e.float_value, e.type == DType::kF32));
        return suffix(e.type, DType::kF32);
      case Op::kVar: return put("{}", name(e.var.get(), e.var->name));
      case Op::kLoad: return access(e.buffer, e.args);
      case Op::kBits: put("as_"); return call(dtype_name(e.type), e.args);
      case Op::kNot: put("!"); return expression(*e.args[0], kPrimary);
      default: break;
    }
    const auto [sign, level] = infix(e.op);
    if (level == kPrimary)
      return call(e.op == Op::kCast ? dtype_name(e.type) : op_info(e.op).name, e.args);
    const bool needs_parentheses = level < around;
    if (needs_parentheses) put("(");
    // Comparisons don't chain; the others associate to the left.
    const auto next = static_cast<Level>(level + 1);
    expression(*e.args[0], level == kCompareLevel ? next : level);
    put(" {} ", sign);
    expression(*e.args[1], next);
    if (needs_parentheses) put(")");
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  // The name of a variable or buffer, the same for the same address.
  const std::string& name(const void* identity, const std::string& wish) {
    const auto it = names_.find(identity);
    if (it != names_.end()) return it->second;
    const std::string base = as_identifier(wish);
    std::string unique = base;
    for (int& n = next_suffix_[base]; used_.contains(unique); ++n)
      unique = fmt::format("{}_{}", base, n + 1);
    used_.insert(unique);
    return names_[identity] = unique;
  }

  static std::string type(const Buffer& b) {
    return fmt::format("{}[{}]", dtype_name(b.dtype), fmt::join(b.shape, ", "));
  }
  void suffix(DType type, DType usual) {
    if (type != usual) put(":{}", dtype_name(type));
  }
  void list(const std::vector<Expr>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (i) put(", ");
      expression(*args[i], kOrLevel);
    }
  }
  void access(const BufferPtr& buffer, const std::vector<Expr>& indices) {
    put("{}[", name(buffer.get(), buffer->name));
    list(indices);
    put("]");
  }
  // NAME[FROM : EXTENT, ...]
  void box(const Box& b) {
    put("{}{}[", b.transposed ? "transposed " : "", name(b.buffer.get(), b.buffer->name));
    for (size_t i = 0; i < b.indices.size(); ++i) {
      if (i) put(", ");
      expression(*b.indices[i], kOrLevel);
      put(" : {}", b.extents[i]);
    }
    put("]");
  }
  void call(std::string_view function, const std::vector<Expr>& args) {
    put("{}(", function);
    list(args);
    put(")");
  }
  void statements(const std::vector<Stmt>& list, int depth) {
    for (const Stmt& s : list) statement(*s, depth);
  }
  void body(const StmtNode& s, int depth) {
    put(" {{\n");
    statements(s.body, depth + 1);
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    put("}}\n");
  }

  std::string out_;
  std::unordered_map<const void*, std::string> names_;  // looked up only
  std::set<std::string> used_;
  std::map<std::string, int> next_suffix_;
};

}  // namespace

bool is_reserved(std::string_view word) {
  if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) return true;
  if (parse_dtype(word.starts_with("as_") ? word.substr(3) : word)) return true;
  for (int op = static_cast<int>(Op::kAdd); op < kNumOps; ++op) {
    if (op_info(static_cast<Op>(op)).name == word) return true;
  }
  return false;
}

bool is_identifier(std::string_view word) {
  if (word.empty() || !is_letter(word[0])) return false;
  for (size_t i = 1; i < word.size(); ++i) {
    const bool joins = word[i] == '.' && i + 1 < word.size() && word[i + 1] != '.';
    if (!is_letter(word[i]) && !is_digit(word[i]) && !joins) return false;
  }
  return true;
}

std::string print(const Program& program) {
  Printer printer;
  printer.program(program);
  return std::move(printer).take();
}

std::string print(const Stmt& s) {
  Printer printer;
  printer.statement(*s, 0);
  return std::move(printer).take();
}

std::string print(const Expr& e) {
  Printer printer;
  printer.expression(*e, kOrLevel);
  return std::move(printer).take();
}

}  // namespace hone::ir
