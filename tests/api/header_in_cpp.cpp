// The header stands alone, in strict C++11, the oldest standard it promises.
#include <gapless/gapless.h>

int main() { return sizeof(gapless_job) == 0; }
