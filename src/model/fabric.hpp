// What it costs to move bytes between nodes.
//
// The figures are for the software providers that libfabric has everywhere (tcp, shm): about 5 microseconds an
// operation whatever it carries. Hardware posts in a tenth of that and registers more dearly.
#pragma once

namespace gapless::model {

struct FabricProfile {
  double operation_ns = 5000;      ///< one operation of a list
  double doorbell_ns = 0;          ///< handing over a list, or an operation by itself
  double byte_ns = 0.4;            ///< on the way
  double read_byte_ns = 0.5;       ///< of reads, which are slower than writes (Wu et al., 2003, 5.2)
  double notification_ns = 5000;   ///< a message of a few bytes that a process waits for
  double copied_byte_ns = 0.1;     ///< packing or unpacking
  double copied_block_ns = 5;      ///< and for each block
  double registration_ns = 1500;   ///< registering and deregistering one region
  double registered_page_ns = 60;  ///< for each page of it
};

}  // namespace gapless::model
