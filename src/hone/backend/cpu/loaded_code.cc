#include <dlfcn.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <map>

#include "hone/backend/cpu/compiler.h"

namespace hone::backend::cpu {

namespace jl = llvm::jitlink;

struct LoadedCode::State {
  std::string object;  // the linker reads from it while it runs
  std::unique_ptr<jl::InProcessMemoryManager> memory;
  jl::JITLinkMemoryManager::FinalizedAlloc allocation;
  std::map<std::string, void*> symbols;
  std::string problem;
};

namespace {

// Links one graph at once, in the calling thread.
class Context final : public jl::JITLinkContext {
 public:
  Context(jl::JITLinkMemoryManager& memory, jl::JITLinkMemoryManager::FinalizedAlloc& allocation,
          std::map<std::string, void*>& symbols, std::string& problem)
      : JITLinkContext(nullptr),
        memory_(memory),
        allocation_(allocation),
        symbols_(symbols),
        problem_(problem) {}

  jl::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override { problem_ = llvm::toString(std::move(error)); }
  void lookup(const LookupMap& wanted,
              std::unique_ptr<jl::JITLinkAsyncLookupContinuation> next) override {
    jl::AsyncLookupResult found;
    for (const auto& [name, flags] : wanted) {
      void* address = dlsym(RTLD_DEFAULT, (*name).str().c_str());
      if (!address && flags == jl::SymbolLookupFlags::RequiredSymbol) {
        next->run(
            llvm::createStringError("symbol %s is not in this process", (*name).str().c_str()));
        return;
      }
      found[name] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    }
    next->run(std::move(found));
  }
  llvm::Error notifyResolved(jl::LinkGraph& graph) override {
    for (const jl::Symbol* symbol : graph.defined_symbols()) {
      if (symbol->hasName() && symbol->getScope() != jl::Scope::Local) {
        symbols_[(*symbol->getName()).str()] = symbol->getAddress().toPtr<void*>();
      }
    }
    return llvm::Error::success();
  }
  void notifyFinalized(jl::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocation_ = std::move(allocation);
  }

 private:
  jl::JITLinkMemoryManager& memory_;
  jl::JITLinkMemoryManager::FinalizedAlloc& allocation_;
  std::map<std::string, void*>& symbols_;
  std::string& problem_;
};

}  // namespace

LoadedCode::LoadedCode(std::unique_ptr<State> state) : state_(std::move(state)) {}

LoadedCode::~LoadedCode() {
  if (state_->allocation)
    llvm::consumeError(state_->memory->deallocate(std::move(state_->allocation)));
}

Result<std::unique_ptr<LoadedCode>> LoadedCode::load(std::string_view object) {
  auto state = std::make_unique<State>();
  state->object = object;
  auto memory = jl::InProcessMemoryManager::Create();
  if (!memory)
    return error(Code::kInternal, "memory for code: {}", llvm::toString(memory.takeError()));
  state->memory = std::move(*memory);
  auto names = std::make_shared<llvm::orc::SymbolStringPool>();
  auto graph = jl::createLinkGraphFromObject(llvm::MemoryBufferRef(state->object, "kernel"), names);
  if (!graph) return invalid("object: {}", llvm::toString(graph.takeError()));
  jl::link(std::move(*graph), std::make_unique<Context>(*state->memory, state->allocation,
                                                        state->symbols, state->problem));
  std::unique_ptr<LoadedCode> code(new LoadedCode(std::move(state)));
  if (!code->state_->problem.empty()) return invalid("object: {}", code->state_->problem);
  return code;
}

Result<std::unique_ptr<LoadedCode>> LoadedCode::load(std::string_view object,
                                                     std::string_view prepare_object) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<LoadedCode> code, load(object));
  if (!prepare_object.empty()) {
    HONE_ASSIGN_OR_RETURN(code->prepare_, load(prepare_object));
  }
  return code;
}

void* LoadedCode::symbol(const std::string& name) const {
  const auto it = state_->symbols.find(name);
  if (it != state_->symbols.end()) return it->second;
  return prepare_ ? prepare_->symbol(name) : nullptr;
}

}  // namespace hone::backend::cpu
