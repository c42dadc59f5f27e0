#include "hone/backend/cpu/guarded_run_testing.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "hone/base/round_up.h"
#include "hone/runtime/float_mode.h"
#include "hone/runtime/pool.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kGuard = 64 * 1024;  // faults on each side: further than a kernel's row
// Beside a buffer, on its pages: a huge number, so that what is loaded there and used shows.
constexpr unsigned char kSlack = 0x7F;
// Scratch memory that is overwritten between tiles, in all.
constexpr int64_t kSpoiledBytes = 16 << 20;

enum class Flush : uint8_t { kBelow, kAbove };  // with which of the two guards

// Memory that parent and child share.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(map_bytes_, other.map_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GuardedBuffer() {
    if (map_ != nullptr) munmap(map_, static_cast<size_t>(map_bytes_));
  }

  // So many, each as far from the next one.
  [[nodiscard]] static Result<std::vector<GuardedBuffer>> create(int count, int64_t bytes,
                                                                 Flush flush, int64_t alignment) {
    const int64_t inside = round_up(std::max<int64_t>(bytes, 1), kPage);
    const int64_t before = flush == Flush::kBelow ? 0 : (inside - bytes) / alignment * alignment;
    const int64_t stride = inside + 2 * kGuard;
    void* map = mmap(nullptr, static_cast<size_t>(count * stride), PROT_NONE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
      return error(Code::kIo, "no memory for {} bytes: {}", bytes, std::strerror(errno));
    std::vector<GuardedBuffer> buffers(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      GuardedBuffer& b = buffers[static_cast<size_t>(i)];
      b.bytes_ = bytes;
      b.map_ = static_cast<unsigned char*>(map) + i * stride;
      b.map_bytes_ = stride;
      b.data_ = b.map_ + kGuard + before;
    }
    for (const GuardedBuffer& b : buffers) {
      HONE_RETURN_IF_ERROR(b.protect(PROT_READ | PROT_WRITE));
      std::memset(b.first(), kSlack, static_cast<size_t>(inside));
    }
    return buffers;
  }

  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] Status protect(int how) const {
    if (mprotect(first(), static_cast<size_t>(last() - first()), how) != 0)
      return error(Code::kIo, "cannot protect {} bytes: {}", bytes_, std::strerror(errno));
    return ok_status();
  }
  // Returns whether nothing was written between the buffer and the guards.
  [[nodiscard]] bool intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kSlack; };
    return std::all_of(first(), data_, untouched) && std::all_of(data_ + bytes_, last(), untouched);
  }
  [[nodiscard]] bool owns(const unsigned char* at) const {
    return at >= map_ && at < map_ + map_bytes_;
  }

 private:
  [[nodiscard]] unsigned char* first() const { return map_ + kGuard; }
  [[nodiscard]] unsigned char* last() const { return map_ + map_bytes_ - kGuard; }
  unsigned char* map_ = nullptr;
  int64_t map_bytes_ = 0;
  unsigned char* data_ = nullptr;
  int64_t bytes_ = 0;
};

struct Kernel {
  hone_kernel function;
  int64_t num_tiles;
};

// All buffers of a program at one side of their pages.
struct Memory {
  std::vector<std::string> names;
  std::vector<GuardedBuffer> buffers;  // the params', then one scratch memory for each thread
  std::vector<void*> args;             // arguments of the kernels
};

// The child writes its message here before it exits with 1; the fault's handler writes here as
// well.
constexpr size_t kMessageBytes = 512;
char* message = nullptr;
const char* run_name = "";
const Memory* faulting = nullptr;  // the memory of the run in progress

void say(const std::string& text) {
  const size_t n = std::min(text.size(), kMessageBytes - 1);
  std::memcpy(message, text.data(), n);
  message[n] = '\0';
}

// The signal comes from a kernel's own instruction: what is called here was not interrupted.
void on_fault(int signal, siginfo_t* info, void*) {
  const auto* at = static_cast<const unsigned char*>(info->si_addr);
  std::string place = fmt::format("at address {}", info->si_addr);
  if (at == nullptr) place = "at no valid address, or by an aligned access to another one";
  for (size_t i = 0; faulting != nullptr && i < faulting->buffers.size(); ++i) {
    const GuardedBuffer& buffer = faulting->buffers[i];
    if (!buffer.owns(at)) continue;
    const int64_t offset = at - buffer.data();
    place = offset < 0 ? fmt::format("{} bytes before", -offset)
            : offset >= buffer.bytes()
                ? fmt::format("{} bytes behind the end of", offset - buffer.bytes())
                : fmt::format("by a store at byte {} of read-only", offset);
    place += fmt::format(" {}, which has {} bytes", faulting->names[i], buffer.bytes());
  }
  say(fmt::format("{}: {} {}", run_name, strsignal(signal), place));
  _exit(1);
}

// Returns whether kernels write it.
bool is_written(ir::Role role) { return role != ir::Role::kInput && role != ir::Role::kConstant; }

Result<Memory> make_memory(const ir::Program& program, const ObjectCode& code, Flush flush,
                           const GuardOptions& options) {
  Memory memory;
  const auto add = [&](std::vector<GuardedBuffer>&& buffers, const std::string& name) {
    for (GuardedBuffer& buffer : buffers) {
      memory.buffers.push_back(std::move(buffer));
      memory.names.push_back(name);
    }
  };
  for (const ir::Param& param : program.params) {
    const int64_t bytes = param.buffer->bytes();
    HONE_ASSIGN_OR_RETURN(std::vector<GuardedBuffer> buffer,
                          GuardedBuffer::create(1, bytes, flush, options.alignment));
    memory.args.push_back(buffer[0].data());
    add(std::move(buffer), param.buffer->name);
  }
  if (options.shared != nullptr)
    memory.args[options.shared->output] = memory.args[options.shared->input];
  HONE_ASSIGN_OR_RETURN(std::vector<GuardedBuffer> scratch,
                        GuardedBuffer::create(options.threads, code.scratch_bytes, flush, 64));
  add(std::move(scratch), "scratch memory");
  return memory;
}

void spoil(const GuardedBuffer& buffer) {
  if (buffer.bytes() > 0) std::memset(buffer.data(), 0xFF, static_cast<size_t>(buffer.bytes()));
}

Status fill(const Memory& memory, const ir::Program& program, std::span<const Tensor> args,
            const GuardOptions& options) {
  for (const GuardedBuffer& buffer : memory.buffers)
    HONE_RETURN_IF_ERROR(buffer.protect(PROT_READ | PROT_WRITE));
  for (size_t i = 0; i < memory.buffers.size(); ++i) {
    const GuardedBuffer& buffer = memory.buffers[i];
    const bool given = i < program.params.size() && !is_written(program.params[i].role);
    if (given) {
      std::memcpy(buffer.data(), args[i].data(), static_cast<size_t>(buffer.bytes()));
    } else {
      spoil(buffer);
    }
    const bool shared = options.shared != nullptr && options.shared->input == i;
    if (given && !shared) HONE_RETURN_IF_ERROR(buffer.protect(PROT_READ));
  }
  return ok_status();
}

void run_all_at_once(const Memory& memory, const std::vector<Kernel>& kernels,
                     const GuardedBuffer& scratch) {
  for (const Kernel& k : kernels) k.function(memory.args.data(), scratch.data(), 0, k.num_tiles, 0);
}

void run_one_by_one(const Memory& memory, const std::vector<Kernel>& kernels,
                    const GuardedBuffer& scratch) {
  for (const Kernel& k : kernels) {
    const int64_t every = 1 + k.num_tiles * scratch.bytes() / kSpoiledBytes;
    for (int64_t tile = k.num_tiles; tile-- > 0;) {
      if (tile % every == 0) spoil(scratch);
      k.function(memory.args.data(), scratch.data(), tile, tile + 1, 0);
    }
  }
}

Status run_in_pool(const Memory& memory, const std::vector<Kernel>& kernels, int threads,
                   size_t num_params) {
  runtime::Pool* pool = runtime::pool_create({.num_threads = threads});
  if (pool == nullptr) return error(Code::kIo, "cannot start {} threads", threads);
  std::vector<runtime::PhaseCall> calls;
  for (const Kernel& k : kernels) calls.push_back({k.function, memory.args.data(), k.num_tiles, 0});
  // The pool finds a thread's scratch memory by its number: the guarded ones are told apart here.
  const int64_t stride =
      threads < 2 ? 0 : memory.buffers[num_params + 1].data() - memory.buffers[num_params].data();
  const int returned = runtime::pool_run(pool, calls.data(), static_cast<int64_t>(calls.size()),
                                         memory.buffers[num_params].data(), stride);
  runtime::pool_destroy(pool);
  return returned == 0 ? ok_status() : error(Code::kInternal, "a kernel returned {}", returned);
}

Status check(const Memory& memory, const Memory& first, const ir::Program& program) {
  for (size_t i = 0; i < memory.buffers.size(); ++i) {
    if (!memory.buffers[i].intact())
      return error(Code::kInternal, "{}: something was written next to {}", run_name,
                   memory.names[i]);
  }
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Role role = program.params[i].role;
    if (role != ir::Role::kOutput && role != ir::Role::kPacked) continue;
    const auto bytes = static_cast<size_t>(memory.buffers[i].bytes());
    if (bytes > 0 && std::memcmp(memory.args[i], first.args[i], bytes) != 0)
      return error(Code::kInternal, "{}: {} differs from the first run", run_name, memory.names[i]);
  }
  return ok_status();
}

// Two ways to run in different memory, compared.
struct Child {
  const ir::Program& program;
  const std::vector<Kernel>& kernels;
  const Memory &below, &above;
  std::span<const Tensor> args;
  const GuardOptions& options;

  [[nodiscard]] const GuardedBuffer& scratch(const Memory& memory) const {
    return memory.buffers[program.params.size()];
  }
  [[nodiscard]] Status begin(const Memory& memory, const char* name) const {
    faulting = &memory;
    run_name = name;
    return fill(memory, program, args, options);
  }
  [[nodiscard]] Status run_pool(const Memory& memory, int threads) const {
    return run_in_pool(memory, kernels, threads, program.params.size());
  }
  [[nodiscard]] Status run_pools() const {
    if (!options.flush_denormals) {
      HONE_RETURN_IF_ERROR(begin(below, "a pool of one thread, buffers behind a guard"));
      HONE_RETURN_IF_ERROR(run_pool(below, 1));
    }
    HONE_RETURN_IF_ERROR(begin(above, "tiles by a pool of threads, buffers before a guard"));
    HONE_RETURN_IF_ERROR(run_pool(above, options.threads));
    return check(above, below, program);
  }
  [[nodiscard]] Status run_calls() const {
    HONE_RETURN_IF_ERROR(begin(below, "all tiles at once, buffers behind a guard"));
    run_all_at_once(below, kernels, scratch(below));
    HONE_RETURN_IF_ERROR(check(below, below, program));
    HONE_RETURN_IF_ERROR(begin(above, "tiles one by one, buffers before a guard"));
    run_one_by_one(above, kernels, scratch(above));
    return check(above, below, program);
  }
  [[nodiscard]] Status run() const {
    if (!options.flush_denormals) {
      HONE_RETURN_IF_ERROR(run_pools());
      return run_calls();
    }
    const runtime::FloatMode mode;
    HONE_RETURN_IF_ERROR(run_calls());
    return run_pools();
  }
};

}  // namespace

int some_threads(uint64_t seed) {
  static constexpr int kThreads[] = {2, 3, 2, 7, 2, 3, 2, 64};
  return kThreads[seed / 2 % std::size(kThreads)];  // the last bit is for other choices
}

Status run_guarded(const ir::Program& program, const ObjectCode& code, std::span<Tensor> args,
                   const GuardOptions& options) {
  HONE_ASSERT(args.size() == program.params.size(), "one argument per param");
  HONE_ASSERT(options.threads >= 1, "the caller is one");
  HONE_ASSIGN_OR_RETURN(const auto loaded, LoadedCode::load(code.object));
  std::vector<Kernel> kernels;
  for (const EntryPoint& phase : code.phases) {
    const auto kernel = reinterpret_cast<hone_kernel>(loaded->symbol(phase.symbol));
    if (kernel == nullptr) return error(Code::kInternal, "no symbol {}", phase.symbol);
    kernels.push_back({kernel, phase.num_tiles});
  }
  HONE_ASSIGN_OR_RETURN(const Memory below, make_memory(program, code, Flush::kBelow, options));
  HONE_ASSIGN_OR_RETURN(const Memory above, make_memory(program, code, Flush::kAbove, options));
  HONE_ASSIGN_OR_RETURN(const std::vector<GuardedBuffer> texts,
                        GuardedBuffer::create(1, kMessageBytes, Flush::kBelow, 64));
  const GuardedBuffer& text = texts[0];

  const pid_t child = fork();
  if (child < 0) return error(Code::kIo, "cannot fork: {}", std::strerror(errno));
  if (child == 0) {
    message = reinterpret_cast<char*>(text.data());
    message[0] = '\0';
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
    const rlimit limit = {options.seconds, options.seconds + 1};
    setrlimit(RLIMIT_CPU, &limit);
    const Status status = Child{program, kernels, below, above, args, options}.run();
    say(status.message());
    _exit(status.ok() ? 0 : 1);
  }
  int how = 0;
  while (waitpid(child, &how, 0) < 0) {
    if (errno != EINTR) return error(Code::kIo, "cannot wait: {}", std::strerror(errno));
  }
  if (WIFSIGNALED(how))
    return error(Code::kInternal, "the kernels were ended by signal {} ({})", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
  if (WEXITSTATUS(how) != 0)
    return error(Code::kInternal, "{}", reinterpret_cast<const char*>(text.data()));
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_written(program.params[i].role) && args[i].bytes() > 0)
      std::memcpy(args[i].data(), below.args[i], static_cast<size_t>(args[i].bytes()));
  }
  return ok_status();
}

}  // namespace hone::backend::cpu
