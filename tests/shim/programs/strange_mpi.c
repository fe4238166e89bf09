// An MPI library with no sign of any known ABI, and too old to have MPI_Send. MPI_Sendrecv succeeds if its twelve
// arguments are 1 to 12, so that a program's very first call can show whether arguments survive being resolved.
int PMPI_Get_version(int* version, int* subversion) {
  *version = 1;
  *subversion = 2;
  return 0;
}

static int check(const void* a, int b, int c, int d, int e, void* f, int g, int h, int i, int j, int k, void* l) {
  const int expected = (long)a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && (long)f == 6 && g == 7 && h == 8 &&
                       i == 9 && j == 10 && k == 11 && (long)l == 12;
  return expected ? 0 : 1;
}

int MPI_Sendrecv(const void* a, int b, int c, int d, int e, void* f, int g, int h, int i, int j, int k, void* l) {
  return check(a, b, c, d, e, f, g, h, i, j, k, l);
}

int PMPI_Sendrecv(const void* a, int b, int c, int d, int e, void* f, int g, int h, int i, int j, int k, void* l) {
  return check(a, b, c, d, e, f, g, h, i, j, k, l);
}
