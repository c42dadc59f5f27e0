#include "hone/backend/gpu/print_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hone/backend/gpu/block_shape.h"
#include "hone/backend/gpu/print_stmt.h"
#include "hone/backend/gpu/warp_lanes.h"
#include "hone/ir/in_place.h"
#include "hone/ir/scalar.h"
#include "hone/ir/verifier.h"
#include "hone/ir/visit.h"

namespace hone::backend::gpu {
namespace {

constexpr size_t kColumns = 100;             // of a line of parameters
constexpr int64_t kStaticShared = 48 << 10;  // CUDA: a kernel with more must ask for it

constexpr std::string_view kCudaHead =
    "typedef unsigned char uchar;\n"
    "typedef unsigned short ushort;\n"
    "typedef unsigned int uint;\n"
    "typedef unsigned long ulong;\n"
    "#define FUNCTION static __device__ __forceinline__\n";
constexpr std::string_view kOpenClHead = "#define FUNCTION static inline\n";
constexpr std::string_view kDoubles = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";

// What a phase does with the buffers of the params.
struct Uses {
  std::set<const ir::Buffer*> used, written;
};

Uses uses_of(const ir::StmtNode& body) {
  Uses uses;
  ir::for_each_stmt(body, [&](const ir::StmtNode& s) {
    if (s.kind == ir::StmtKind::kStore) {
      uses.used.insert(s.buffer.get());
      uses.written.insert(s.buffer.get());
    }
    for (const ir::Box& box : s.boxes) uses.used.insert(box.buffer.get());
    ir::for_each_expr(s, [&](const ir::Expr& e) {
      ir::visit(e, [&](const ir::Expr& n) {
        if (n->op == ir::Op::kLoad) uses.used.insert(n->buffer.get());
      });
    });
  });
  return uses;
}

std::string comment_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    while (!line.empty() && (line.back() == '\\' || line.back() == ' ')) line.pop_back();
    out += line.empty() ? "//\n" : fmt::format("// {}\n", line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string known_values(Dialect dialect, const ir::Buffer& buffer, const std::string& name) {
  std::vector<std::string> values;
  for (const float v : buffer.values) {
    const auto value = static_cast<double>(v);
    values.push_back(is_float(buffer.dtype)
                         ? float_literal(buffer.dtype, value)
                         : integer_literal(buffer.dtype, ir::float_to_int(buffer.dtype, value)));
  }
  if (values.empty()) values.emplace_back("0");
  return fmt::format("{} {} {}[{}] = {{{}}};\n",
                     dialect == Dialect::kCuda ? "static __device__ const" : "__constant",
                     value_type(dialect, buffer.dtype), name, values.size(),
                     fmt::join(values, ", "));
}

// The tables of known values that the kernels of a program share.
struct Tables {
  std::string text;
  // One per param; empty where there is no table. They begin with known_ as no function of the
  // dialects does, which a table at file scope would declare again.
  std::vector<std::string> names;
};

class KernelPrinter {
 public:
  KernelPrinter(const ir::Program& program, const Tables& tables, Dialect dialect, CNames names,
                CFunctions& functions, const PrintOptions& options)
      : program_(program),
        tables_(tables),
        options_(options),
        names_(std::move(names)),
        context_{dialect, names_, functions, {}, options.max_nodes},
        memory_(context_) {}

  Result<Kernel> print(size_t phase, std::string& text) {
    const ir::Phase& p = program_.phases[phase];
    HONE_RETURN_IF_ERROR(check_statements(*p.body, context_.dialect));
    ir::Stmt body = p.body;
    if (context_.is_cuda()) {
      HONE_ASSIGN_OR_RETURN(body, spread_over_lanes(p.body));
    }
    HONE_ASSIGN_OR_RETURN(shape_, block_shape(*body));
    HONE_RETURN_IF_ERROR(check_sizes());
    kernel_ = {fmt::format("{}_{}", options_.symbol_prefix, phase),
               phase,
               p.num_tiles(),
               static_cast<int>(shape_.threads),
               shape_.shared_bytes,
               0,
               shape_.private_bytes};
    const Uses uses = uses_of(*body);
    signature(uses);
    shared_arrays();
    StmtPrinter(context_, memory_, shape_, out_).phase(*body);
    out_.close();
    HONE_RETURN_IF_ERROR(context_.status);
    text = std::move(out_).take();
    return kernel_;
  }

 private:
  Status check_sizes() const {
    const bool too_many = !context_.is_cuda() &&
                          shape_.private_bytes * shape_.threads > options_.max_private_group_bytes;
    if (!too_many && shape_.private_bytes <= options_.max_private_bytes) return ok_status();
    const int64_t of_group =
        options_.max_private_group_bytes / std::max<int64_t>(shape_.threads, 1);
    return error(Code::kUnsupported,
                 "each of {} threads has arrays of {} bytes, expected {} at most", shape_.threads,
                 shape_.private_bytes,
                 context_.is_cuda() ? options_.max_private_bytes
                                    : std::min(options_.max_private_bytes, of_group));
  }

  // Memory that an output may share with an input is not restricted to one pointer.
  bool may_share(size_t param) const {
    const std::vector<ir::InPlacePair> pairs = ir::in_place_pairs(program_);
    return std::any_of(pairs.begin(), pairs.end(), [&](const ir::InPlacePair& pair) {
      return pair.input == param || pair.output == param;
    });
  }

  void signature(const Uses& uses) {
    std::vector<std::string> params, pointers;
    for (size_t i = 0; i < program_.params.size(); ++i) {
      const ir::BufferPtr& buffer = program_.params[i].buffer;
      const bool table = !tables_.names[i].empty();
      const bool used = uses.used.contains(buffer.get()) && !table;
      const std::string name = table  ? tables_.names[i]
                               : used ? names_.declare(buffer.get(), buffer->name)
                                      : "";
      memory_.add_param(buffer, name, table);
      const std::string type =
          fmt::format("{}{}", uses.written.contains(buffer.get()) ? "" : "const ",
                      memory_type(context_.dialect, buffer->dtype));
      const bool alone = used && !may_share(i);
      if (context_.is_cuda()) {
        params.push_back(used ? fmt::format("{}* {}{}", type, alone ? "__restrict__ " : "", name)
                              : "char*");
        continue;
      }
      const std::string base = names_.fresh(fmt::format("p{}", i));
      const std::string offset = names_.fresh(fmt::format("offset{}", i));
      params.push_back(fmt::format("__global char* {}, ulong {}", base, offset));
      if (used)
        pointers.push_back(fmt::format("__global {}* {}{} = (__global {}*)({} + {});", type,
                                       alone ? "restrict " : "", name, type, base, offset));
    }
    params.emplace_back(context_.is_cuda() ? "long long first_tile" : "long first_tile");
    out_.line(
        context_.is_cuda()
            ? fmt::format("extern \"C\" __global__ void __launch_bounds__({})", launch_bounds())
            : fmt::format("__kernel __attribute__((reqd_work_group_size({}, 1, 1))) void",
                          kernel_.threads));
    open_function(params);
    for (const std::string& pointer : pointers) out_.line(pointer);
  }

  // The threads of a block, and the blocks of an SM if these are given.
  [[nodiscard]] std::string launch_bounds() const {
    const auto blocks = options_.resident_blocks.find(kernel_.symbol);
    if (blocks == options_.resident_blocks.end()) return std::to_string(kernel_.threads);
    return fmt::format("{}, {}", kernel_.threads, blocks->second);
  }

  // The parameters stand in one line if they fit.
  void open_function(const std::vector<std::string>& params) {
    const std::string line = fmt::format("{}({})", kernel_.symbol, fmt::join(params, ", "));
    if (line.size() < kColumns) return out_.open(line);
    out_.line(kernel_.symbol + "(");
    for (size_t i = 0; i + 1 < params.size(); ++i) out_.line(fmt::format("    {},", params[i]));
    out_.open(fmt::format("    {})", params.back()));
  }

  // Arrays begin at multiples of 16 bytes, as vectors of 16 bytes are loaded from them.
  void shared_arrays() {
    const bool dynamic = context_.is_cuda() && shape_.shared_bytes > kStaticShared;
    if (dynamic) {
      out_.line("extern __shared__ __align__(16) char shared_memory[];");
      kernel_.dynamic_bytes = shape_.shared_bytes;
    }
    int64_t offset = 0;
    for (const ir::BufferPtr& buffer : shape_.shared) {
      const std::string array = memory_.declare_array(buffer, 0);
      if (!context_.is_cuda()) {
        out_.line(fmt::format("__local {} __attribute__((aligned(16)));", array));
      } else if (!dynamic) {
        out_.line(fmt::format("__shared__ __align__(16) {};", array));
      } else {
        out_.line(dynamic_array(array, memory_.name(*buffer), offset));
      }
      offset += shared_size(*buffer);
    }
  }
  // float S[8][32] as a reference: float (&S)[8][32] = *(float (*)[8][32])(shared_memory + 0);
  static std::string dynamic_array(const std::string& array, const std::string& name,
                                   int64_t offset) {
    const size_t at = array.rfind(' ') + 1;
    const std::string type = array.substr(0, at);
    const std::string extents = array.substr(at + name.size());
    return fmt::format("{}(&{}){} = *({}(*){})(shared_memory + {});", type, name, extents, type,
                       extents, offset);
  }

  const ir::Program& program_;
  const Tables& tables_;
  const PrintOptions& options_;
  CNames names_;
  PrintContext context_;
  Memory memory_;
  CodeWriter out_;
  BlockShape shape_;
  Kernel kernel_;
};

}  // namespace

struct SourcePrinter::State {
  Dialect dialect;
  CFunctions functions;
  CNames names;      // of what kernels share
  std::string text;  // tables and kernels
};

SourcePrinter::SourcePrinter(Dialect dialect)
    : state_(std::make_unique<State>(State{dialect, CFunctions(dialect), {}, {}})) {}
SourcePrinter::~SourcePrinter() = default;
SourcePrinter::SourcePrinter(SourcePrinter&&) noexcept = default;
SourcePrinter& SourcePrinter::operator=(SourcePrinter&&) noexcept = default;

Result<std::vector<Kernel>> SourcePrinter::add(const ir::Program& program,
                                               const PrintOptions& options) {
  HONE_RETURN_IF_ERROR(ir::verify(program));
  Tables tables;
  CNames names = state_->names;
  CFunctions functions = state_->functions;
  for (const ir::Param& param : program.params) {
    std::string& name = tables.names.emplace_back();
    if (param.buffer->values.empty()) continue;
    name = names.fresh("known_" + param.buffer->name);
    tables.text += known_values(state_->dialect, *param.buffer, name);
  }
  for (const ir::Param& param : program.params) {
    for (const float v : param.buffer->values) {
      if (std::isnan(v)) functions.use("NAN");
      if (std::isinf(v)) functions.use("INFINITY");
    }
  }
  std::string text = comment_lines(options.comment) + tables.text;
  std::vector<Kernel> kernels;
  for (size_t i = 0; i < program.phases.size(); ++i) {
    if (program.phases[i].prepare) continue;
    KernelPrinter printer(program, tables, state_->dialect, names, functions, options);
    std::string kernel;
    HONE_ASSIGN_OR_RETURN(Kernel made, printer.print(i, kernel));
    kernels.push_back(std::move(made));
    text += "\n" + kernel;
  }
  state_->names = std::move(names);
  state_->functions = std::move(functions);
  state_->text += text;
  return kernels;
}

std::string SourcePrinter::text() const {
  const bool cuda = state_->dialect == Dialect::kCuda;
  const std::string functions = state_->functions.definitions();
  std::string out;
  const auto has = [&](std::string_view word) {
    return functions.find(word) != std::string::npos ||
           state_->text.find(word) != std::string::npos;
  };
  if (!cuda && has("double")) out += kDoubles;
  if (cuda) {
    out += kCudaHead;
  } else if (!functions.empty()) {
    out += kOpenClHead;
  }
  if (!functions.empty()) out += functions;
  // A kernel begins with an empty line.
  return out + state_->text;
}

Result<Source> print_c(const ir::Program& program, Dialect dialect, const PrintOptions& options) {
  SourcePrinter printer(dialect);
  HONE_ASSIGN_OR_RETURN(std::vector<Kernel> kernels, printer.add(program, options));
  return Source{printer.text(), std::move(kernels)};
}

}  // namespace hone::backend::gpu
