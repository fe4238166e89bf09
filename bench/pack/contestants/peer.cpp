#include "contestants/peer.hpp"

#include <dlfcn.h>

#include <memory>

#include "contestants/peer.h"
#include "gpu.hpp"

namespace gapless::bench {
namespace {

struct Peer {
  std::string name;
  decltype(&gapless_peer_open) open;
  decltype(&gapless_peer_issue) issue;
  decltype(&gapless_peer_waits) waits;
  decltype(&gapless_peer_close) close;
};

std::vector<Peer> loaded;

template <class Function>
Function* find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) fail(dlerror());
  return reinterpret_cast<Function*>(found);
}

}  // namespace

void load_peer(const std::string& name_and_path) {
  const std::size_t equals = name_and_path.find('=');
  if (equals == std::string::npos) fail("a peer is NAME=PATH, not " + name_and_path);
  void* const library = dlopen(name_and_path.c_str() + equals + 1, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  loaded.push_back({name_and_path.substr(0, equals), find<decltype(gapless_peer_open)>(library, "gapless_peer_open"),
                    find<decltype(gapless_peer_issue)>(library, "gapless_peer_issue"),
                    find<decltype(gapless_peer_waits)>(library, "gapless_peer_waits"),
                    find<decltype(gapless_peer_close)>(library, "gapless_peer_close")});
}

std::vector<Contestant> peers(const Workload& work) {
  std::vector<Contestant> contestants;
  if (loaded.empty()) return contestants;
  const std::string text = work.text();
  for (const Peer& peer : loaded) {
    const std::shared_ptr<void> handle(peer.open(text.c_str(), work.count), peer.close);
    if (handle == nullptr) continue;
    const auto issue = [handle, peer](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
      if (peer.issue(handle.get(), direction == GAPLESS_UNPACK, spot.memory, spot.packed, stream) != 0) {
        fail(peer.name + " failed");
      }
    };
    contestants.push_back({peer.name, issue, peer.waits() == 0});
  }
  return contestants;
}

}  // namespace gapless::bench
