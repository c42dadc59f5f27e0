#include "hone/backend/gpu/compile_apart.h"

#include "hone/backend/gpu/code_files.h"
#include "hone/backend/gpu/compile_pool.h"
#include "hone/backend/keeps_code.h"
#include "hone/base/hash.h"
#include "hone/base/log.h"

namespace hone::backend::gpu {
namespace {

// A result as bytes: the error's code and message, then what was made.
std::string encode(const Result<Cubin>& made) {
  wire::Writer w;
  w.put(made.status().code()).put(made.status().message());
  if (!made.ok()) return w.bytes();
  w.put(made->data).put(made->ptx);
  return w.bytes();
}

Result<Cubin> decode(std::string_view bytes) {
  wire::Reader r(bytes);
  const auto code = r.get<Code>();
  std::string message = r.get_string();
  if (code != Code::kOk && r.done()) return Status(code, std::move(message));
  std::string data = r.get_string(), ptx = r.get_string();
  if (!r.done()) return error(Code::kInternal, "the answer of a compiling worker is not valid");
  return make_cubin(std::move(data), std::move(ptx));
}

// Returns the files of this user, or null if nothing is to be kept.
CodeFiles* files() {
  if (!KeepsCode::any()) return nullptr;
  static const std::string folder = code_folder();
  static CodeFiles all(folder);
  return folder.empty() ? nullptr : &all;
}

CodeFiles::Key key_of(const std::string& source, const std::string& arch) {
  static const std::string compiler = nvrtc_identity();
  const auto hash = [&](uint64_t seed) {
    return hash_combine(hash_string(source, seed),
                        hash_combine(hash_string(arch, seed), hash_string(compiler, seed)));
  };
  return {hash(1), hash(2)};
}

}  // namespace

Result<Cubin> compile_cuda_apart(const std::string& source, const std::string& arch) {
  HONE_RETURN_IF_ERROR(find_nvrtc());
  CodeFiles* const kept = files();
  const CodeFiles::Key key = key_of(source, arch);
  if (kept != nullptr) {
    if (const std::optional<std::string> known = kept->find(key); known) {
      if (Result<Cubin> made = decode(*known); made.ok()) return made;
    }
  }
  CompilePool* const processes = compile_pool({"--compile-cuda"});
  std::string answer;
  if (processes == nullptr) {
    answer = encode(compile_cuda(source, arch));
  } else {
    HONE_ASSIGN_OR_RETURN(answer, processes->compile(wire::Writer().put(arch).put(source).bytes()));
  }
  Result<Cubin> made = decode(answer);
  if (kept != nullptr && made.ok()) {
    if (const Status status = kept->keep(key, answer); !status.ok())
      log_info("compiled code is not kept: {}", status.message());
  }
  return made;
}

int compile_worker_main(int fd) {
  isolate_worker(fd);
  const Status found = find_nvrtc();
  return serve_compiles(fd, found.message(), [](const std::string& request) {
    wire::Reader r(request);
    const std::string arch = r.get_string(), source = r.get_string();
    return encode(r.done() ? compile_cuda(source, arch)
                           : Result<Cubin>(invalid("a request to compile that is not valid")));
  });
}

}  // namespace hone::backend::gpu
