#include "hone/backend/cpu/emit_object.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "hone/base/allocation.h"

namespace hone::backend::cpu {
namespace {

// One per thread and target: making one takes longer than compiling a small kernel.
Result<llvm::TargetMachine*> machine_for(const target::Cpu& target) {
  initialize_targets();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  const std::string features = feature_string(target);
  std::unique_ptr<llvm::TargetMachine>& machine =
      machines[target.triple + "|" + target.model + "|" + features];
  if (!machine) {
    const llvm::Triple triple(target.triple);
    std::string message;
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, message);
    if (!backend)
      return error(Code::kUnsupported, "no code generator for target {}", target.triple);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    machine.reset(backend->createTargetMachine(triple, target.model, features, options,
                                               llvm::Reloc::PIC_, std::nullopt,
                                               llvm::CodeGenOptLevel::Default));
    if (!machine) return error(Code::kUnsupported, "no code generator for cpu {}", target.model);
  }
  return machine.get();
}

Result<std::string> emit(llvm::Module& module, const target::Cpu& target,
                         llvm::CodeGenFileType type) {
  HONE_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, machine_for(target));
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type, true)) {
    return error(Code::kInternal, "the code generator writes no such file");
  }
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    // An allocation of LLVM that fails in malloc ends like one that fails in new.
    llvm::install_bad_alloc_error_handler(
        [](void* /*data*/, const char* /*reason*/, bool /*diagnostics*/) { fail_allocation(0); });
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeX86Disassembler();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    LLVMInitializeAArch64Disassembler();
    // The emitter advances its own pointers; the pass would take most of the compile time of loops
    // with many guards, and gain nothing.
    const auto& flags = llvm::cl::getRegisteredOptions();
    const auto reduction = flags.find("disable-lsr");
    HONE_ASSERT(reduction != flags.end(), "LLVM has no flag to disable loop strength reduction");
    static_cast<llvm::cl::opt<bool>*>(reduction->second)->setValue(true);
  });
}

std::string feature_string(const target::Cpu& target) {
  std::string features;
  for (const std::string& feature : target.features)
    features += (features.empty() ? "" : ",") + feature;
  return features;
}

bool has_avx512(const target::Cpu& target) {
  return target.triple.starts_with("x86_64") && target.vector_bytes == 64;
}

bool has_avx2_at_most(const target::Cpu& target) {
  return target.triple.starts_with("x86_64") && target.vector_bytes == 32;
}

bool converts_half(const target::Cpu& target) {
  if (!target.triple.starts_with("x86_64")) return true;
  const auto machine = machine_for(target);
  return machine.ok() && (*machine)->getMCSubtargetInfo()->checkFeatures("+f16c");
}

Status prepare_module(llvm::Module& module, const target::Cpu& target) {
  auto machine = machine_for(target);
  if (!machine.ok()) return machine.status();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  return ok_status();
}

void optimize(llvm::Module& module, const target::Cpu& target) {
  auto machine = machine_for(target);
  HONE_ASSERT(machine.ok(), "optimize needs a prepared module");
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(*machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) passes.run(f, functions);
  }
}

Result<std::string> emit_object(llvm::Module& module, const target::Cpu& target) {
  return emit(module, target, llvm::CodeGenFileType::ObjectFile);
}

Result<std::string> emit_assembly(const llvm::Module& module, const target::Cpu& target) {
  const std::unique_ptr<llvm::Module> copy =
      llvm::CloneModule(module);  // code generation consumes it
  return emit(*copy, target, llvm::CodeGenFileType::AssemblyFile);
}

namespace {

using Object = std::unique_ptr<llvm::object::ObjectFile>;

Status object_error(llvm::Error failure) {
  return error(Code::kInternal, "generated object: {}", llvm::toString(std::move(failure)));
}

Result<Object> open_object(const std::string& object) {
  const llvm::MemoryBufferRef buffer(object, "kernel");
  llvm::Expected<Object> file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) return object_error(file.takeError());
  return std::move(*file);
}

}  // namespace

Result<int64_t> text_bytes(const std::string& object) {
  HONE_ASSIGN_OR_RETURN(const Object file, open_object(object));
  int64_t bytes = 0;
  for (const llvm::object::SectionRef& section : file->sections()) {
    if (section.isText()) bytes += static_cast<int64_t>(section.getSize());
  }
  return bytes;
}

Result<std::vector<std::string>> undefined_symbols(const std::string& object) {
  HONE_ASSIGN_OR_RETURN(const Object file, open_object(object));
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef& symbol : file->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags) return object_error(flags.takeError());
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) == 0) continue;
    auto name = symbol.getName();
    if (!name) return object_error(name.takeError());
    if (!name->empty()) names.push_back(name->str());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hone::backend::cpu
