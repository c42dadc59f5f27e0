#include "hone/backend/gpu/cuda_emulation_testing.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "hone/base/round_up.h"

namespace hone::backend::gpu::testing {
namespace {

constexpr size_t kStackBytes = 128 << 10;  // of a thread, beside its arrays
constexpr std::string_view kPtx = "hone::backend::gpu::emulated::ptx::";

// The sanitizers that the compiler is called with: "thread" makes each access to memory a call, as
// barriers are calls, too. The library of that sanitizer is not linked.
#ifdef __clang__
constexpr std::string_view kSanitizers = "thread,alignment,array-bounds";
#else
constexpr std::string_view kSanitizers = "thread,alignment,bounds";
#endif

// A reader of one asm statement.
class Assembler {
 public:
  // The text behind "asm" and, if there is one, "volatile".
  explicit Assembler(std::string_view text) : text_(text) {}

  // Returns the call, or an error. used() is then what was read, up to the semicolon.
  Result<std::string> call() {
    HONE_RETURN_IF_ERROR(read());
    std::string_view rest = instruction_;
    if (rest.empty() || rest.back() != ';' || rest.find(';') + 1 != rest.size())
      return error(Code::kInvalid, "inline assembler is no single instruction: {}", instruction_);
    rest.remove_suffix(1);
    const size_t space = std::min(rest.find(' '), rest.size());
    std::string out(kPtx);
    for (const char c : rest.substr(0, space)) out += c == '.' ? '_' : c;
    rest.remove_prefix(space);
    out += "(";
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      HONE_ASSIGN_OR_RETURN(const std::string operand, operand_of(rest.substr(0, comma)));
      if (!operand.empty()) out += (out.back() == '(' ? "" : ", ") + operand;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return out + ")";
  }
  [[nodiscard]] size_t used() const { return at_; }

 private:
  Status read() {
    if (!skip('(')) return unexpected();
    while (peek() == '"') instruction_ += quoted();
    // Outputs, inputs, and what is changed beside them.
    for (int section = 0; skip(':'); ++section) {
      while (peek() == '"') {
        const std::string constraint = quoted();
        if (section == 2) {
          if (!skip(',')) break;
          continue;
        }
        if (peek() != '(') return unexpected();
        operands_.push_back(fmt::format("{}{}({})", kPtx, constraint.back(), in_parentheses()));
        if (!skip(',')) break;
      }
    }
    return skip(')') ? ok_status() : unexpected();
  }
  Status unexpected() const {
    return error(Code::kInvalid, "unexpected inline assembler: {}", text_.substr(at_, 40));
  }
  // Operands may stand in brackets and braces: a place in memory and vectors.
  Result<std::string> operand_of(std::string_view text) const {
    std::string bare;
    for (const char c : text) {
      if (std::string_view(" []{}").find(c) == std::string_view::npos) bare += c;
    }
    if (bare.empty() || bare[0] != '%') return bare;
    const size_t number = std::strtoul(bare.c_str() + 1, nullptr, 10);
    if (number >= operands_.size()) return error(Code::kInvalid, "no operand {}", bare);
    return operands_[number];
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool skip(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::string quoted() {
    const size_t end = std::min(text_.find('"', at_ + 1), text_.size());
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  std::string in_parentheses() {
    const size_t first = at_ + 1;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    std::string out(text_.substr(first, at_ - first));
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string instruction_;
  std::vector<std::string> operands_;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

Status run_command(const std::string& command, const std::string& messages) {
  const std::string all = fmt::format("{} > '{}' 2>&1", command, messages);
  if (std::system(all.c_str()) == 0) return ok_status();  // NOLINT: a test's own words
  HONE_ASSIGN_OR_RETURN(const std::string said, read_file(messages));
  return error(Code::kInternal, "{}\n{}", command, said);
}

}  // namespace

Result<std::string> without_assembler(const std::string& text) {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find("asm"); at != std::string::npos; at = text.find("asm", done)) {
    size_t behind = at + 3;
    constexpr std::string_view kVolatile = " volatile";
    if (text.compare(behind, kVolatile.size(), kVolatile) == 0) behind += kVolatile.size();
    out += text.substr(done, at - done);
    if (behind >= text.size() || text[behind] != '(') {  // a part of a name
      out += text.substr(at, 3);
      done = at + 3;
      continue;
    }
    Assembler assembler(std::string_view(text).substr(behind));
    HONE_ASSIGN_OR_RETURN(const std::string call, assembler.call());
    out += call;
    done = behind + assembler.used();
  }
  return out + text.substr(done);
}

Result<CudaEmulation> CudaEmulation::compile(const std::string& text,
                                             const std::vector<std::string>& symbols, Build build) {
  HONE_ASSIGN_OR_RETURN(std::string source, without_assembler(text));
  replace_all(source, "extern __shared__ __align__(16) char shared_memory[];",
              "char* const shared_memory = hone::backend::gpu::emulated::dynamic_shared();");
  for (const std::string& symbol : symbols)
    source += fmt::format(
        "extern \"C\" __attribute__((visibility(\"default\"))) void emulated_{}(const void* const* "
        "arguments) {{ hone::backend::gpu::emulated::call({}, arguments); }}\n",
        symbol, symbol);
  HONE_ASSIGN_OR_RETURN(TempDir folder, TempDir::create());
  const std::string base = folder.path() + "/kernels";
  HONE_RETURN_IF_ERROR(write_file_atomic(base + ".cc", source));
  HONE_RETURN_IF_ERROR(run_command(
      fmt::format("'{}' -std=c++20 {} -fPIC -fno-strict-aliasing -fvisibility=hidden -w "
                  "-fsanitize={} -fsanitize-recover=all -I '{}' -include "
                  "hone/backend/gpu/emulated_cuda_testing.h -c '{}.cc' -o '{}.o'",
                  HONE_CXX_COMPILER, build == Build::kPlain ? "-O0" : "-O1", kSanitizers,
                  HONE_SOURCES, base, base),
      base + ".txt"));
  HONE_RETURN_IF_ERROR(
      run_command(fmt::format("'{}' -shared '{}.o' -o '{}.so' -lm", HONE_CXX_COMPILER, base, base),
                  base + ".txt"));
  CudaEmulation made(std::move(folder));
  HONE_RETURN_IF_ERROR(made.load(base + ".so"));
  return made;
}

Status CudaEmulation::load(const std::string& library) {
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library_ != nullptr ? ok_status() : error(Code::kInternal, "{}", dlerror());
}

CudaEmulation::CudaEmulation(CudaEmulation&& other) noexcept
    : folder_(std::move(other.folder_)), library_(std::exchange(other.library_, nullptr)) {}

CudaEmulation::~CudaEmulation() {
  if (library_ != nullptr) dlclose(library_);
}

Status CudaEmulation::run(const ir::Program& program, const Kernel& kernel,
                          std::vector<Tensor>& args, const emulated::Schedule& schedule) const {
  using Start = emulated::SharedArrays (*)(emulated::Services*);
  const auto start = reinterpret_cast<Start>(dlsym(library_, "emulated_start"));
  const auto entry = reinterpret_cast<emulated::KernelEntry>(
      dlsym(library_, fmt::format("emulated_{}", kernel.symbol).c_str()));
  if (start == nullptr || entry == nullptr)
    return error(Code::kInternal, "no kernel {}", kernel.symbol);

  std::vector<emulated::GlobalMemory::Buffer> buffers;
  for (size_t i = 0; i < args.size(); ++i) {
    const ir::Param& param = program.params[i];
    const bool writable = param.role == ir::Role::kOutput || param.role == ir::Role::kWorkspace;
    buffers.push_back(
        {param.buffer->name, args[i].data(), static_cast<size_t>(args[i].bytes()), writable});
  }
  emulated::GlobalMemory global(buffers);
  alignas(16) static char none[16];
  std::vector<std::max_align_t> dynamic(
      ceil_div(static_cast<size_t>(kernel.dynamic_bytes), sizeof(std::max_align_t)));
  char* const dynamic_shared = dynamic.empty() ? none : reinterpret_cast<char*>(dynamic.data());
  emulated::SharedMemory shared;
  const size_t stack = round_up(kStackBytes + 2 * static_cast<size_t>(kernel.private_bytes), 4096);
  emulated::Block block(shared, global, dynamic_shared, kernel.threads, stack);
  const emulated::SharedArrays arrays = start(&block.services());
  shared.add(arrays.begin, static_cast<size_t>(arrays.end - arrays.begin));
  if (kernel.dynamic_bytes > 0)
    shared.add(dynamic_shared, static_cast<size_t>(kernel.dynamic_bytes));

  std::vector<const void*> arguments;
  for (size_t i = 0; i < args.size(); ++i) arguments.push_back(global.at(i));
  long long first_tile = 0;
  arguments.push_back(&first_tile);
  const int64_t middle = kernel.tiles / 2;
  for (const auto& [first, tiles] : {std::pair{middle, kernel.tiles - middle}, {0, middle}}) {
    first_tile = first;
    for (int64_t b = 0; b < tiles; ++b) {
      const std::string wrong =
          block.run(entry, arguments.data(), static_cast<unsigned>(b), schedule);
      if (!wrong.empty()) return error(Code::kInternal, "{}: {}", kernel.symbol, wrong);
    }
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].bytes() > 0)
      std::memcpy(args[i].data(), global.at(i), static_cast<size_t>(args[i].bytes()));
  }
  return ok_status();
}

}  // namespace hone::backend::gpu::testing
