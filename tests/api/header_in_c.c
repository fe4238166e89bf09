/* The header stands alone, in strict C11. */
#include <gapless/gapless.h>

int main(void) { return sizeof(gapless_job) == 0; }
