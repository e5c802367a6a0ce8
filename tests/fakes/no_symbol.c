/* A shared object, but no plugin: it exports no gpurun_plugin. */
int no_symbol_at_all(void);

int no_symbol_at_all(void)
{
    return 0;
}
