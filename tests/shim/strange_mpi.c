// An MPI library with no sign of any known ABI, and too old to have MPI_Send.
int PMPI_Get_version(int* version, int* subversion) {
  *version = 1;
  *subversion = 2;
  return 0;
}
int PMPI_Init(int* argc, char*** argv) { return argc == 0 && argv == 0 ? 0 : 1; }
int MPI_Init(int* argc, char*** argv) { return argc == 0 && argv == 0 ? 0 : 1; }
