"""The packages to install: a wheel, and three Debian packages made from it (``python -m packages``).

====================  ======================================================================================
module                what it makes
====================  ======================================================================================
``wheel``             the wheel, with the compiled eBPF objects
``bundled``           the part of Ryu, and the Python packages of the controller, copied from .venv
``settings_file``     ``/etc/fairq/fairq.conf``, from the settings that the code declares
``manpages``          manual pages, from the commands' help, the settings and the units
``contents``          what is in each Debian package: ``fairq-common``, ``fairq-agent``, ``fairq-controller``
``deb``               a Debian package from a list of files, by ``dpkg-deb``
``data/``             units, launchers, and the scripts that dpkg runs
====================  ======================================================================================

Nothing is downloaded: what is packaged is what set-up has installed and the tests have run.
"""
